"""Connections that carried one packet each, while their peer may not have read it yet."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress

from bus.transports.parting import part

LIMIT = 3  # a reference peer has room for 6, also for other senders; what finds none tries again after 1 s
IGNORED = 1  # to a peer that has not closed one in time, and none before: perhaps nobody reads there


class Unread:
    """The connections to one peer that it may not have read yet, at most `LIMIT` at a time.

    The peer closes one when it has read the packet, or the end behind it. `on_room()` is called when another
    connection may be made, after there were as many as allowed. A connection that the peer has not closed
    after `patience_s` is closed here. If it had closed none before, there are at most `IGNORED` from then on,
    until it closes one.
    """

    def __init__(self, loop: AbstractEventLoop, patience_s: float, on_room: Callable[[], None]) -> None:
        self._loop, self._patience_s, self._on_room = loop, patience_s, on_room
        self._timers: dict[socket.socket, TimerHandle] = {}
        self._closes = self._ignores = False

    @property
    def full(self) -> bool:
        return len(self._timers) >= (IGNORED if self._ignores else LIMIT)

    def add(self, sock: socket.socket) -> None:
        """Take a connection on which the packet has been sent."""
        with suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        self._timers[sock] = self._loop.call_later(self._patience_s, self._end, sock, False)
        self._loop.add_reader(sock, self._end, sock, True)

    def _end(self, sock: socket.socket, closed: bool) -> None:
        full = self.full
        self._closes |= closed
        self._ignores = not self._closes
        self._timers.pop(sock).cancel()
        self._loop.remove_reader(sock)
        sock.close()
        if full:
            self._on_room()

    def close(self) -> None:
        """Close all. Idempotent."""
        for sock, timer in self._timers.items():
            timer.cancel()
            self._loop.remove_reader(sock)
            part(self._loop, sock)
        self._timers.clear()
