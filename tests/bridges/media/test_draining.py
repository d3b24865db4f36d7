"""What a tty has not sent yet: nobody waits for a line that takes nothing. A pty, as here, holds nothing."""

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from bridges.media import draining
from bridges.media.draining import close_drained, drain, queued_bytes
from tests.helpers.peers import wait


class Driver:
    """A driver that holds `held` bytes, sends `sends` of them between two looks, and drops them if told."""

    def __init__(self, held: int, sends: int) -> None:
        self.held, self.sends = held, sends
        self.dropped = 0

    def look(self) -> int:
        self.held -= min(self.held, self.sends)
        return self.held

    def drop(self) -> None:
        self.dropped, self.held = self.held, 0


@pytest.fixture
def line() -> Iterator[int]:
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)


def put(driver: Driver, patch: pytest.MonkeyPatch) -> Driver:
    """Let the kernel ask a driver what it holds, and tell it to drop that."""
    ioctl = fcntl.ioctl

    def asking(fd: int, request: int, *rest: Any) -> Any:
        return struct.pack("i", driver.look()) if request == termios.TIOCOUTQ else ioctl(fd, request, *rest)

    patch.setattr(fcntl, "ioctl", asking)
    patch.setattr(termios, "tcflush", lambda fd, queue: driver.drop())
    patch.setattr(draining, "STILL_S", 0.01)
    return driver


def test_a_line_that_takes_nothing_is_not_waited_for(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Driver(900, 0), monkeypatch)
    with pytest.raises(TimeoutError, match="takes nothing"):
        drain(line)
    os.close(line)


def test_one_that_is_slower_than_all_patience_is_not_either(
    line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Driver(1 << 30, 1), monkeypatch)
    monkeypatch.setattr(draining, "LONGEST_S", 0.03)
    with pytest.raises(TimeoutError, match="takes nothing"):
        drain(line)
    os.close(line)


def test_a_program_that_ends_does_not_wait_for_a_slow_one(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Driver(1 << 30, 1), monkeypatch)
    monkeypatch.setattr(draining, "LONGEST_S", 3600.0)
    monkeypatch.setattr(draining, "main_thread", Thread)  # one that does not run
    with pytest.raises(TimeoutError, match="takes nothing"):
        drain(line)
    os.close(line)


def test_what_leaves_is_waited_for(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = put(Driver(40, 1), monkeypatch)
    drain(line)
    assert (driver.held, driver.dropped) == (0, 0)
    os.close(line)


@pytest.mark.parametrize("sends", [0, 100])
def test_a_close_drops_what_does_not_leave_and_holds_nobody(
    sends: int, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, closed = put(Driver(900, sends), monkeypatch), list[bool]()

    def close() -> None:
        os.close(line)
        closed.append(driver.held > 0)  # then the kernel would wait

    close_drained(line, close)
    wait(lambda: closed)
    assert closed == [False]
    assert (driver.dropped > 0) == (not sends)


def test_one_that_is_gone_holds_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    assert queued_bytes(write) == 0
    close_drained(write, lambda: os.close(write))
