"""What is said of lines that end otherwise than the settings have it."""

import pytest

from bridges.media.spoken import ear_of
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.protocol import Protocol
from bridges.protocols.slip.protocol import Slip

CR = 'lines that end with CR: `delimiter: "\\r"`, in an endpoint `delimiter=%0D`'
BAUD = "another protocol, or another baud rate"


@pytest.mark.parametrize(
    ("record", "sample", "words"),
    [
        (Lines(), b"12.5 kg\r12.6 kg\r", CR),
        (Lines(delimiter=";"), b"12.5 kg\r12.6 kg\r", CR),
        (Lines(delimiter="\r"), b"12.5 kg\n12.6 kg\n", "lines that end with LF: leave `delimiter` out"),
        (Lines(delimiter=";"), b"12.5 kg\r\n12.6 kg\r\n", "lines that end with LF: leave `delimiter` out"),
        (Lines(), b"x" * 256, f"no LF in the last 256: another delimiter, {BAUD}"),
        (Lines(delimiter="ab"), b"x" * 9, f'no "ab" in the last 9: another delimiter, {BAUD}'),
        (Lines(), b"12.5 kg\r\n", BAUD),
        (JsonLines(), b"x" * 256, f"no LF in the last 256: {BAUD}"),
        (JsonLines(), b"x\n" * 6, 'lines of text ("x"): `protocol: lines`'),
        (Nmea(), b"x" * 256, f"no LF or CR in the last 256: {BAUD}"),
        (Slip(), b"x" * 256, f"no END in the last 256: {BAUD}"),
    ],
)
def test_the_end_of_lines_is_what_is_guessed_first(record: Protocol, sample: bytes, words: str) -> None:
    ear = ear_of(record, "another baud rate")
    assert (ear.likeness(sample) or ear.guess) == words


@pytest.mark.parametrize("record", [Lines(), Lines(delimiter="\r"), JsonLines(), Nmea(), Slip()], ids=repr)
def test_nothing_is_said_of_the_end_of_lines_where_none_is_kept(record: Protocol) -> None:
    ear = ear_of(record, "another baud rate")
    assert (ear.likeness(b"") or ear.guess) == BAUD
