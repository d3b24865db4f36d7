"""Cutting at a delimiter: however the bytes come in pieces, within a bound, each run counted once."""

import random

import pytest

from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.delimited import Cutter
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.protocol import Protocol
from bridges.protocols.slip.protocol import Slip
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.bridges.protocols.spoken_support import translator


def cut(delimiter: bytes, longest_bytes: int, pieces: list[bytes]) -> tuple[list[bytes], tuple[int, int]]:
    cutter = Cutter(delimiter, longest_bytes)
    runs = [run for piece in pieces for run in cutter.feed(piece)]
    assert len(cutter) <= longest_bytes + len(delimiter)
    return runs, cutter.take_over()


@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n", b"<>|", b"aab!"])
def test_pieces_do_not_matter(delimiter: bytes) -> None:
    chance = random.Random(delimiter)
    for _ in range(200):
        data = bytes(chance.choices(delimiter + b"xyz", k=chance.randrange(80)))
        cuts = sorted(chance.choices(range(len(data) + 1), k=5))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        expected = [run for run in data.split(delimiter)[:-1] if len(run) <= 9]
        runs, (over, over_bytes) = cut(delimiter, 9, pieces)
        assert runs == expected
        long = [run for run in data.split(delimiter) if len(run) > 9]
        rest = data.split(delimiter)[-1]
        assert over - (len(rest) > 9) <= len(long) - (len(rest) > 9) <= over
        assert over_bytes <= sum(map(len, long)) + len(delimiter)


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 20])
def test_a_run_of_10_mb_is_bounded_and_counted_once_and_the_next_is_found(piece: int) -> None:
    size = 10_000_000 if piece > 100 else 100_000
    data = b"x" * size + b"\r\nnext\r\n"
    runs, over = cut(b"\r\n", 2048, [data[at : at + piece] for at in range(0, len(data), piece)])
    assert runs == [b"next"]
    assert over == (1, size)


@pytest.mark.parametrize("record", [one(send=("o",)) for one in (Lines, Nmea, JsonLines, Slip, Bytes)])
@pytest.mark.parametrize("kind", [0, 2, 4, 8, 0x40, 0x80])
def test_only_what_publishes_leaves(record: Protocol, kind: int) -> None:
    made = translator(record)
    data = b"$GPGGA,1" if isinstance(record, Nmea) else b"1"
    assert made.send(pack(PUB, pattern_of("o"), data), 0.0).items
    sent = made.send(pack(kind, pattern_of("o"), data), 0.0)
    assert (list(sent.items), sent.why) == ([], "not sent here")


def test_of_a_long_run_that_comes_whole_all_bytes_are_counted() -> None:
    assert cut(b"\n", 4, [b"01234\nab\n012345\n"]) == ([b"ab"], (2, 11))


def test_the_rest_says_whether_it_is_the_end_of_a_long_run() -> None:
    cutter = Cutter(b"\n", 4)
    assert cutter.feed(b"ab\ncd") == [b"ab"]
    assert cutter.take_rest() == (b"cd", False)
    assert cutter.feed(b"012345") == []
    assert cutter.take_rest()[1]
    assert cutter.feed(b"ab\n") == [b"ab"]
