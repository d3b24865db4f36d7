"""Logs of candump: the forms of a line, and lines that are none."""

from pathlib import Path
from typing import Any

import can
import pytest

from appliance.commandline.cli import main
from capture.formats.candump import parse
from capture.formats.source import LeftOut
from capture.formats.table import BY_KEY, format_of
from capture.frames import Frames
from tests.capture.formats.field import listed, read_back, some, written

CANDUMP = BY_KEY["candump"]


def of(text: str) -> tuple[Frames, LeftOut]:
    told = LeftOut()
    return parse(text.encode(), told, {"step_ns": 1000, "direction": False}), told


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("123#", (0x123, 0, 0, False, b"")),
        ("123#R4", (0x40000123, 4, 0, False, bytes(4))),
        ("123#R", (0x40000123, 0, 0, False, b"")),
        ("00000123#01", (0x80000123, 1, 0, False, b"\x01")),
        ("1FFFFFFF#01", (0x9FFFFFFF, 1, 0, False, b"\x01")),
        ("7FF##3" + "01" * 12, (0x7FF, 12, 3, True, b"\x01" * 12)),
        ("123##0", (0x123, 0, 0, True, b"")),
        ("123##5AA", (0x123, 1, 5, True, b"\xaa")),
        ("123#0000000000000000_9", (0x123, 8, 9, False, bytes(8))),
        ("123#R8_F", (0x40000123, 8, 15, False, bytes(8))),
        ("20000004#0000000000000000", (0x20000004, 8, 0, False, bytes(8))),
    ],
)
def test_a_frame(text: str, row: tuple[object, ...]) -> None:
    frames, told = of(f"(1436509052.249713) can0 {text}\n")
    assert listed(frames) == [(1_436_509_052_249_713_000, "can0", False, *row)]
    assert not told.counts
    assert written(CANDUMP, frames).decode() == f"(1436509052.249713) can0 {text.replace('#R0', '#R')}\n"


@pytest.mark.parametrize(
    "line",
    [
        "can0 123#11", "(1.0) can0 12#11", "(1.0) can0 1234#11", "(1.0) can0 123#1", "(1.0) can0 123#1G",
        "(1.0) can0 123#112233445566778899", "(x.0) can0 123#11", "(1.x) can0 123#11", "(1.0)can0 123#11",
        "(1.0) can0 123", "(1.0) can0 123#R9", "(1.0) can0 123##", "(1.0) can0 123##0112233445566778899",
        "(1.0) can0 FFF#11", "(1.0) can0 123#1122_9", "(1.0) can0 123#11 X", "(1.0)  123#11",
        "(.1) can0 123#",
        "(99999999999.0) can0 123#", "(1.0) a-very-long-name0 123#11", "(1.0000000001) can0 123#", "#", "(",
        "(9999999999.0) can0 123#", "(1.0) can0 #11", "(1.0) can0 3FFFFFFF#11#",
        "(1.0) can0 45123#81:00:1#11",
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_counted_and_its_neighbours_stay(line: str) -> None:
    frames, told = of(f"(1.0) can0 123#11\n{line}\r\n\n(2.5) can1 456#22 T\n")
    assert [row[:2] for row in listed(frames)] == [(10**9, "can0"), (2_500_000_000, "can1")]
    assert list(told.lines()) == [f"left out: 1 lines that are none of candump -L, such as {line[:60]!r}"]


def test_names_of_several_interfaces_are_in_a_column(tmp_path: Path) -> None:
    """candump puts blanks in front of a shorter name: `fprintf(..., "%*s", max_devname_len, name)`."""
    text = "(1.0)   can0 123#11\n(2.0) vcan10 456#22\n(3.0)      a 7FF#33 T\n"
    (tmp_path / "x").write_text(text)
    found, told, _ = read_back(tmp_path / "x", CANDUMP)
    assert [row[1] for row in listed(found)] == ["can0", "vcan10", "a"]
    assert told == []
    assert format_of("x", text.splitlines()[0].encode()) is CANDUMP


def test_python_can_and_we_read_each_others_logs(tmp_path: Path) -> None:
    frames = some(200, CANDUMP)
    # Its own way.
    keep = frames.chosen((frames.marks * ~frames.is_fd == 0) & ~frames.is_error & ~frames.is_remote)
    (tmp_path / "ours.log").write_bytes(written(CANDUMP, keep))
    theirs = list(can.CanutilsLogReader(tmp_path / "ours.log"))
    assert len(theirs) == len(keep)
    with can.CanutilsLogWriter(tmp_path / "theirs.log") as writer:
        for message in theirs:
            writer.on_message_received(message)
    found, told, style = read_back(tmp_path / "theirs.log", CANDUMP)
    assert told == []
    assert style == {"step_ns": 1000, "direction": True, "bare_errors": False}  # it writes the direction
    assert [(row[1], *row[3:]) for row in listed(found)] == [(row[1], *row[3:]) for row in listed(keep)]


def test_nine_digits_and_directions_stay(tmp_path: Path) -> None:
    text = "(1436509052.249713123) can0 123#11 T\n(1436509052.249714000) vcan_1 00000456#22 R\n"
    (tmp_path / "x.log").write_text(text)
    found, _, style = read_back(tmp_path / "x.log", CANDUMP)
    assert found is not None
    assert written(CANDUMP, found, style).decode() == text


def test_what_python_can_writes_comes_back_as_it_was(tmp_path: Path) -> None:
    """It writes no direction behind error frames, and ` R` stood there after an export."""
    log, again = tmp_path / "theirs.log", tmp_path / "again.log"
    kinds: dict[str, dict[str, Any]] = {
        "heard": {}, "sent": {"is_rx": False}, "error": {"is_error_frame": True, "is_rx": True},
        "remote": {"is_remote_frame": True}, "fd": {"is_fd": True, "bitrate_switch": True},
    }  # fmt: skip
    with can.CanutilsLogWriter(log) as writer:
        for at, kind in enumerate(kinds.values()):
            common: dict[str, Any] = {"timestamp": 1.7e9 + at, "channel": "can0", "is_extended_id": at < 2}
            writer(can.Message(arbitration_id=5, **common, **kind))
    text = log.read_text()
    assert main(["capture", "import", str(log), "--directory", str(tmp_path / "held")]) == 0
    assert main(["capture", "export", str(tmp_path / "held"), str(again)]) == 0
    assert again.read_text() == text
    log.write_text(text.replace("#\n", "# R\n"))  # as candump -x writes them
    found, _, style = read_back(log, CANDUMP)
    assert found is not None
    assert not style["bare_errors"]
    assert written(CANDUMP, found, style) == log.read_bytes()


def test_of_a_log_with_directions_no_sent_frame_counts_as_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.log"
    log.write_text("(1436509052.249713) can0 123#11 T\n")
    assert main(["capture", "import", str(log), "--directory", str(tmp_path / "held")]) == 0
    assert main(["capture", "export", str(tmp_path / "held"), str(tmp_path / "y.log")]) == 0
    assert "which candump does not tell" not in "".join(capsys.readouterr())
