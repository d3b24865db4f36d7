"""Adapters on serial lines that take nothing: opening them ends."""

import fcntl
import os
import pty
import struct
import termios
import tty
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("can")
pytest.importorskip("serial")

from bridges.media import draining
from bridges.media.can import opening
from bridges.media.can.library import open_bus
from bridges.media.can.port import shut_down
from tests.helpers.peers import wait


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    """A pty whose other end is a descriptor."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def fill(name: str) -> None:
    """Write to a line until it takes nothing more."""
    end = os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        while True:
            os.write(end, b"x")
    except BlockingIOError:
        os.close(end)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("interface", "settings"),
    [("slcan", {"sleep_after_open": 0, "bitrate": 500_000}), ("robotell", {}), ("seeedstudio", {})],
)
def test_an_adapter_at_a_line_that_takes_nothing_is_a_fault(
    interface: str, settings: dict[str, Any], line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WRITE_S", 0.05)
    fill(line[1])
    before = descriptors()
    with pytest.raises(Exception, match=r"(?i)write|init frame"):
        open_bus(interface, channel=line[1], **settings)
    assert descriptors() == before


def test_an_adapter_whose_line_takes_nothing_any_more_is_closed(
    line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WRITE_S", 0.05)
    bus = open_bus("slcan", channel=line[1], sleep_after_open=0, bitrate=500_000)
    said = b""
    while not said.endswith(b"O\r"):  # it comes in several pieces
        said += os.read(line[0], 100)
    fill(line[1])
    before = descriptors()
    shut_down(bus)
    assert descriptors() < before


def test_the_flush_of_an_adapter_at_a_line_that_takes_nothing_ends(
    line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a USB adapter which hangs: a pty holds nothing that is not sent."""
    held, ioctl = [4], fcntl.ioctl

    def asking(fd: int, request: int, *rest: Any) -> Any:
        return struct.pack("i", held[0]) if request == termios.TIOCOUTQ else ioctl(fd, request, *rest)

    bus: Any = open_bus("slcan", channel=line[1], sleep_after_open=0, bitrate=500_000)
    monkeypatch.setattr(fcntl, "ioctl", asking)
    monkeypatch.setattr(draining, "STILL_S", 0.02)
    monkeypatch.setattr(termios, "tcflush", lambda fd, queue: held.__setitem__(0, 0))
    with pytest.raises(OSError, match="takes nothing"):
        bus.serialPortOrig.flush()
    before = descriptors()
    shut_down(bus)
    wait(lambda: descriptors() < before)
    assert held == [0]
