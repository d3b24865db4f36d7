"""Sends pings to services, over connections to their ROUTER sockets.

Anybody can list services at any address, so the connections are few, and hosts share them: those of one that
lists many silent services take none from the services of another.
"""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from bus.transports.seats import dials
from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Address
from devices.dbp.catalog.outcomes import Ask
from devices.dbp.catalog.wire import Command, Received, Refused
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

ASKED_MAX: Final = 1024
"""The connections to services that are open, or a quarter of the descriptors for peers if these are fewer."""
OF_HOST: Final = 256
"""The connections to the services that one host has registered, or half of all if that is less."""
PATIENCE_S: Final = 1.0
"""A connection whose ping is not answered for so long goes if another service of its host needs it."""

Answered = Callable[[str, Received | Refused], object]
"""A function that takes the name of a service, and its answer."""


class _Line:
    """The connection to a service of `host`. `asked_s` is the time of a ping without an answer, or None."""

    __slots__ = ("address", "asked_s", "host", "socket")

    def __init__(self, address: Address, host: str, socket: Socket) -> None:
        self.address, self.host, self.socket = address, host, socket
        self.asked_s: float | None = None


class Asks:
    """The connections to services. `asked` counts the pings sent, which wait until there is a connection."""

    def __init__(self, bounds: Bounds, answered: Answered, most: int = ASKED_MAX) -> None:
        self.asked = 0
        self._bounds, self._answered = bounds, answered
        self._most = most
        self._limits = Limits(
            message_bytes=bounds.message_bytes, frames=bounds.frames, queue_bytes=bounds.message_bytes
        )
        self._lines: dict[str, _Line] = {}  # the one asked longest ago first
        self._hosts: dict[str, dict[str, None]] = {}  # the names of each, in the same order
        self._waiting: dict[str, tuple[Ask, Address]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def ask(self, loop: AbstractEventLoop, ask: Ask, address: Address) -> None:
        """Send a ping to the ROUTER of a service at `address`, or let it wait for a connection."""
        self._loop = loop
        line = self._lines.get(ask.name)
        if line is not None and (line.address, line.host) != (address, ask.host):
            self._close(ask.name)
            line = None
        if line is None and not self._make_room(ask.host):
            self._waiting[ask.name] = ask, address
            return
        self._send(ask, line or self._connect(ask.name, address, ask.host))

    def _send(self, ask: Ask, line: _Line) -> None:
        self._waiting.pop(ask.name, None)
        for order in (self._lines, self._hosts.setdefault(line.host, {})):
            order.pop(ask.name, None)
        self._lines[ask.name], self._hosts[line.host][ask.name] = line, None
        self.asked += 1
        line.asked_s = self._loop.time()
        line.socket.send(wire.pack(Command(wire.PING), ask.binary_time, time.time()))

    def _connect(self, name: str, address: Address, host: str) -> _Line:
        made = Socket("dealer", partial(self._on_messages, name), self._limits)
        made.open(self._loop)
        made.connect(*address)
        return _Line(address, host, made)

    def _make_room(self, host: str) -> bool:
        """Close a connection if one more to a service of `host` needs it. Return whether there is room."""
        own, most = self._hosts.get(host, {}), max(2, dials(self._most))
        has_share = len(own) >= min(OF_HOST, most // 2)
        full = len(self._lines) >= most and not has_share
        if not (full or has_share):
            return True
        found = next(self._idle(self._lines if full else own), "")
        if not found and full:
            largest = max(self._hosts.values(), key=len)
            found = next(iter(largest)) if len(largest) > len(own) + 1 else ""
        found = found or next(self._overdue(own), "")
        if found:
            self._close(found)
        return bool(found)

    def _idle(self, names: dict[str, _Line] | dict[str, None]) -> Iterator[str]:
        return (name for name in names if self._lines[name].asked_s is None)

    def _overdue(self, names: dict[str, None]) -> Iterator[str]:
        now_s = self._loop.time()
        asked = ((name, self._lines[name].asked_s) for name in names)
        return (name for name, at_s in asked if at_s is not None and now_s - at_s >= PATIENCE_S)

    def go_on(self) -> None:
        """Send the pings that wait, as far as there is room. Call it some times a second."""
        full = set[str]()
        for ask, address in list(self._waiting.values()):
            if ask.host not in full:
                self.ask(self._loop, ask, address)
                full |= {ask.host} if ask.name in self._waiting else set()

    def _on_messages(self, name: str, messages: list[Message]) -> None:
        line = self._lines.get(name)
        if line is not None:
            line.asked_s = None
        self._answered(name, wire.parse(messages[-1].frames, self._bounds))
        if self._waiting:
            self.go_on()

    def drop(self, name: str) -> None:
        """Close the connection to a service, if there is one, and ask it no more."""
        self._waiting.pop(name, None)
        if name in self._lines:
            self._close(name)

    def _close(self, name: str) -> None:
        line = self._lines.pop(name)
        names = self._hosts[line.host]
        del names[name]
        if not names:
            del self._hosts[line.host]
        line.socket.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._waiting.clear()
        for name in list(self._lines):
            self._close(name)
