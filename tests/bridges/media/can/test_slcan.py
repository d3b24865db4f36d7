"""Lines of slcan adapters: which are frames, how they end, and what they cost where there is no socket."""

import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from bridges.media.can.python_can import BusPort
from bridges.media.can.slcan import BufferedLine, is_frame, prepare_slcan
from bridges.media.can.source import SourceInput


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_line_that_is_no_socket_costs_no_descriptor() -> None:
    pytest.importorskip("can")
    read, write = os.pipe()
    line = BufferedLine(SimpleNamespace(fileno=lambda: read))
    bus: Any = SimpleNamespace(fileno=lambda: read, serialPortOrig=line)
    before = descriptors()
    for _ in range(3):
        BusPort(bus)
        prepare_slcan(bus, None, None)
        bus.serialPortOrig = line
    assert descriptors() <= before  # of a test before, some may have been
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    "line",
    [
        b"t1232AABB",
        b"t1230",
        b"T10723409801020304050607E0",
        b"r1238",
        b"R107234098",
        b"x107234090",
        b"t1232AABB1F40",
        b"t1232AABB00001F40",
        b"d123F" + b"00" * 64,
        b"B107234099" + b"ab" * 12,
        b"D107234090",
    ],
)
def test_whole_frames_with_and_without_a_time(line: bytes) -> None:
    assert is_frame(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"t",
        b"t123",
        b"t1232AAB",
        b"t1239" + b"00" * 9,
        b"T1072340",
        b"tXYZ0",
        b"hello",
        b"Z",
        b"V1013",
        b"d123F" + b"00" * 63,
        b"t1230000000000",
        b"t1232AABBzz",
        b"\xff1230",
    ],
)
def test_what_is_no_whole_frame(line: bytes) -> None:
    assert not is_frame(line)


def lines(*pieces: bytes) -> tuple[bytes, SourceInput]:
    """Return what an adapter's line gives python-can for what comes in pieces, and what it counted."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        line, given = BufferedLine(ours), b""
        for piece in pieces:
            theirs.send(piece)
            while line.in_waiting:
                given += line.read(64)
        line.end()
        return given, line.take_heard()


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n", b"\n\r"])
def test_lines_end_with_cr_lf_or_both(end: bytes) -> None:
    wire = end.join((b"t1232AABB", b"z", b"", b"t1241CC", b""))
    whole = b"t1232AABB\rt1241CC\r"
    assert lines(wire) == (whole, SourceInput())
    assert lines(*(wire[at : at + 1] for at in range(len(wire)))) == (whole, SourceInput())


@pytest.mark.parametrize(
    ("wire", "count", "size"),
    [
        (b"slcan v1.2\rt1230\r", 1, 10),
        (b"AABB\rt1230\r", 1, 4),
        (b"\at1230\rZ\rV1013\rF00\r", 0, 0),
        (bytes(1000) + b"\rt1230\r", 1, 1000),
        (b"t1230\rt12", 1, 3),
        (bytes(300) + b"t1230\rt1230\r", 1, 305),
    ],
)
def test_lines_of_no_frame_are_counted_and_left_out(wire: bytes, count: int, size: int) -> None:
    for pieces in ((wire,), tuple(wire[at : at + 1] for at in range(len(wire)))):
        assert lines(*pieces) == (b"t1230\r", SourceInput(size, count, size))


def test_frames_that_were_read_but_not_taken_are_counted_at_the_close() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        line = BufferedLine(ours)
        theirs.send(b"t1230\r" * 5 + b"t12")
        assert line.in_waiting
        line.read(6 + 2)  # one frame, and a piece of the next
        line.end()
        assert line.take_heard() == SourceInput(3, 1, 3, left=4)
        assert line.take_heard() == SourceInput()
