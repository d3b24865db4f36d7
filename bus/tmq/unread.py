"""Connections that brought one packet each, while their peer may not have read it yet."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable

LIMIT = 3  # a reference peer has room for 6, also for other senders; what finds none tries again after 1 s


class Unread:
    """At most `LIMIT` connections at a time. The peer closes one when it has read the packet.

    `on_room()` is called when another one may be made, after there were as many as may be. A connection that
    the peer has not closed after `verdict_s` is closed here, and counts no more.
    """

    def __init__(self, loop: AbstractEventLoop, verdict_s: float, on_room: Callable[[], None]) -> None:
        self._loop, self._verdict_s, self._on_room = loop, verdict_s, on_room
        self._timers: dict[socket.socket, TimerHandle] = {}

    @property
    def full(self) -> bool:
        return len(self._timers) >= LIMIT

    def add(self, sock: socket.socket) -> None:
        """Take a connection on which the packet has been sent."""
        self._timers[sock] = self._loop.call_later(self._verdict_s, self._end, sock)
        self._loop.add_reader(sock, self._end, sock)

    def _end(self, sock: socket.socket) -> None:
        full = self.full
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
            sock.close()
        self._timers.clear()
