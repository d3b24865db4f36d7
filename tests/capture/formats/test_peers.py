"""Vector's and PEAK's formats beside python-can: it reads what we write, and we what it writes."""

from collections.abc import Callable
from importlib import reload
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import can
import pytest
from can.io import mf4

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE
from capture.formats.format import Format
from capture.formats.table import BY_KEY
from capture.frames import Frames
from tests.capture.formats.field import listed, read_back, some, written

PEERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "asc": (lambda path: can.ASCReader(path, relative_timestamp=False), can.ASCWriter),
    "blf": (can.BLFReader, can.BLFWriter),
    "trc": (can.TRCReader, can.TRCWriter),
}
if find_spec("asammdf"):
    PEERS["mf4"] = can.MF4Reader, can.MF4Writer
Row = tuple[object, ...]


@pytest.fixture(scope="module", autouse=True)
def with_asammdf() -> None:
    """Give python-can back what no other test needs (tests/helpers/sharing.py)."""
    reload(mf4)


def plain(form: Format, count: int = 200) -> Frames:
    """Return frames that python-can and we understand alike: no error frames, and no length codes."""
    frames = some(count, form)
    odd = frames.is_error | ((frames.marks != 0) & ~frames.is_fd)
    if form.key == "trc":
        odd |= frames.is_fd & (frames.sizes > 8)  # it takes a length code for a length there
    if form.key == "asc":
        odd |= frames.is_fd & (frames.sizes == 0)  # that it takes for a remote frame
    return frames.chosen(~odd)


def of_message(message: can.Message, first: int) -> Row:
    marks = message.bitrate_switch | message.error_state_indicator << 1
    data = b"" if message.is_remote_frame else bytes(message.data)
    identifier = message.arbitration_id | (EXTENDED if message.is_extended_id else 0)
    kind = message.is_remote_frame, message.is_fd, marks
    return (
        message.timestamp,
        int(str(message.channel or 0)) - first,
        message.is_rx,
        identifier,
        kind,
        data,
    )


def of_frame(row: Row) -> Row:
    ts_ns, name, is_sent, number, _, marks, is_fd, data = row
    assert isinstance(number, int)
    assert isinstance(ts_ns, int)
    is_remote = bool(number & REMOTE)
    content = b"" if is_remote else data
    identifier = number & (EXTENDED | IDENTIFIER)
    return (
        ts_ns / 1e9,
        int(str(name)[3:]),
        not is_sent,
        identifier,
        (is_remote, is_fd, marks),
        content,
    )


def put(rows: list[Row], key: str) -> list[list[object]]:
    """Return what rows say but for their times: asammdf puts frames of one time in an order of its own."""
    said = [list(row[1:]) for row in rows]
    return sorted(said, key=str) if key == "mf4" else said


def farthest(some: list[Row], others: list[Row]) -> float:
    """Return the largest difference of times, in s."""
    return max(
        abs(float(str(one[0])) - float(str(other[0]))) for one, other in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("key", PEERS)
def test_python_can_reads_what_we_write(key: str, tmp_path: Path) -> None:
    form = BY_KEY[key]
    frames = plain(form)
    path = tmp_path / f"x.{key}"
    path.write_bytes(written(form, frames))
    with PEERS[key][0](path) as reader:
        theirs = [of_message(message, int(key in ("trc", "mf4"))) for message in reader]
    ours = [of_frame(row) for row in listed(frames)]
    assert put(theirs, key) == put(ours, key)
    assert farthest(theirs, ours) < 2e-6


@pytest.mark.parametrize("key", PEERS)
def test_we_read_what_python_can_writes(key: str, tmp_path: Path) -> None:
    frames = plain(BY_KEY[key])
    if key == "trc":
        frames = frames.chosen(~frames.is_fd & ~frames.is_remote)  # it writes neither
    path = tmp_path / f"x.{key}"
    with PEERS[key][1](path) as writer:
        for row in listed(frames):
            ts_s, channel, is_rx, number, (is_remote, is_fd, marks), data = of_frame(row)  # type: ignore[misc]
            size = row[4]
            message = can.Message(
                ts_s, number & IDENTIFIER, bool(number & EXTENDED), is_remote, False, channel,  # type: ignore
                size if is_remote else None, data, is_fd, is_rx, bool(marks & 1), bool(marks & 2),  # type: ignore
            )  # fmt: skip
            writer.on_message_received(message)
    found, told, _ = read_back(path, BY_KEY[key])
    assert told == []
    assert put([of_frame(row) for row in listed(found)], key) == put(
        [of_frame(row) for row in listed(frames)], key
    )
    assert (
        farthest([of_frame(row) for row in listed(found)], [of_frame(row) for row in listed(frames)]) < 2e-3
    )


def test_error_frames_are_read(tmp_path: Path) -> None:
    for key in ("asc", "blf"):
        with PEERS[key][1](tmp_path / key) as writer:
            writer.on_message_received(can.Message(1e9, 0x123, data=b"\1"))
            writer.on_message_received(can.Message(1e9, is_error_frame=True, dlc=8, data=bytes(8)))
        found, told, _ = read_back(tmp_path / key, BY_KEY[key])
        assert told == []
        assert found is not None
        assert found.is_error.tolist() == [False, True]
        assert not found.ids[1] & (ERROR - 1) or key == "blf"
