"""Connections that were closed from here, and from which something is still on the way.

When a TCP connection is closed while something lies unread in it, or comes later, the kernel resets it, and
drops what is on the way. So only our half is closed at first; what comes is read and dropped until the other
machine has all. Source: RFC 1122, section 4.2.2.13.
"""

import asyncio
import os
import socket
import struct
from asyncio import AbstractEventLoop, TimerHandle
from contextlib import suppress
from functools import cache
from typing import Final

from bus.machine.of_loop import OfLoop
from bus.transports.on_the_way import on_the_way_bytes

PARTING_S: Final = 1.0
"""The longest time that a connection stays open after its close. What is on the way then is lost."""
CONNECTIONS: Final = 256
"""The connections of a loop that part at once. Those beyond are closed as the kernel does it."""
_LOOK_S: Final = 0.02
_RESET: Final = struct.pack("ii", 1, 0)  # struct linger: the kernel drops what it has
_SCRATCH_BYTES: Final = 1 << 16
_READS: Final = 4  # of a connection that is closed at once


@cache
def _scratch() -> memoryview:
    """Return the memory that takes what is dropped, made when first something is."""
    return memoryview(bytearray(_SCRATCH_BYTES))


class _Parted:
    """The closed connections of one loop that are still open."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._ends_s: dict[int, float] = {}  # by descriptor
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._ends_s)

    def take(self, sock: socket.socket) -> bool:
        """Close our half of a connection. Return False if that is not needed, or not possible."""
        if len(self._ends_s) >= CONNECTIONS or not on_the_way_bytes(sock.fileno()):
            return False
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        descriptor = sock.detach()
        self._ends_s[descriptor] = self._loop.time() + PARTING_S
        self._loop.add_reader(descriptor, self._read, descriptor)
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)
        return True

    def _read(self, descriptor: int) -> None:
        try:
            has_more = os.readv(descriptor, (_scratch(),)) > 0
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            has_more = False
        if not has_more:
            self._close(descriptor)

    def _look(self) -> None:
        now_s = self._loop.time()
        for descriptor, end_s in tuple(self._ends_s.items()):
            if now_s >= end_s or not on_the_way_bytes(descriptor):
                self._close(descriptor)
        self._timer = self._loop.call_later(_LOOK_S, self._look) if self._ends_s else None

    def _close(self, descriptor: int) -> None:
        del self._ends_s[descriptor]
        self._loop.remove_reader(descriptor)
        os.close(descriptor)

    def __del__(self) -> None:
        for descriptor in self._ends_s:  # the loop has ended before them
            os.close(descriptor)


_parted_of: Final = OfLoop(_Parted)


def part(loop: AbstractEventLoop, sock: socket.socket) -> None:
    """Close a connection: at once, or when the other machine has what is on the way, within `PARTING_S`.

    The socket is closed in any case; at once if the loop has ended. Its readers and writers must be removed
    before. Call it in the thread of the loop.
    """
    if loop.is_closed() or sock.family == socket.AF_UNIX or not _parted_of(loop).take(sock):
        hang_up(sock)


def hang_up(sock: socket.socket) -> None:
    """Close a connection at once, but not by a reset: what lies unread in it is dropped, as far as it is
    little. So the peer reads what it was told last, and an end, and can send until it has."""
    with suppress(OSError):
        for _ in range(_READS):
            if not sock.recv_into(_scratch(), 0, socket.MSG_DONTWAIT):
                break
    sock.close()


def abandon(sock: socket.socket) -> None:
    """Close a connection. What is on the way and has not come to the other machine does not come any more."""
    if on_the_way_bytes(sock.fileno()):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()


async def parted(loop: AbstractEventLoop) -> None:
    """Wait until all connections of a loop that were closed are, at most `PARTING_S`."""
    while _parted_of(loop):
        await asyncio.sleep(_LOOK_S)
