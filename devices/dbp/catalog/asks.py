"""Sends pings to services, over connections to their ROUTER sockets.

Anybody can list services at any address, so only connections that a service has answered are many, and hosts
share all: those of one that lists many silent services take none from the services of another.
"""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
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
"""The connections to the services of one host that have not answered yet, or half of all if that is less."""
PATIENCE_S: Final = 1.0
"""A connection whose ping is not answered for so long goes if another service of its host needs it."""

Answered = Callable[[str, Received | Refused], bool]
"""A function that takes the name of a service, and its answer, and tells whether that is a service's."""


class _Line:
    """The connection to a service of `host`. `asked_s` is the time of a ping without an answer, or None."""

    __slots__ = ("address", "asked_s", "host", "socket")

    def __init__(self, address: Address, host: str, socket: Socket) -> None:
        self.address, self.host, self.socket = address, host, socket
        self.asked_s: float | None = None


class _Host:
    """The names of a host's services with connections: those that have answered, and those that have not.

    The one asked longest ago comes first.
    """

    __slots__ = ("known", "strange")

    def __init__(self) -> None:
        self.known, self.strange = dict[str, None](), dict[str, None]()

    def __len__(self) -> int:
        return len(self.known) + len(self.strange)

    def asked(self, name: str) -> None:
        names = self.known if name in self.known else self.strange
        names.pop(name, None)
        names[name] = None

    def answered(self, name: str) -> None:
        if name in self.strange:
            del self.strange[name]
            self.known[name] = None

    def leave(self, name: str) -> None:
        self.known.pop(name, None)
        self.strange.pop(name, None)


class Asks:
    """The connections to services. `asked` counts the pings sent, which wait until there is a connection."""

    def __init__(self, bounds: Bounds, answered: Answered, most: int = ASKED_MAX) -> None:
        self.asked = 0
        self._bounds, self._answered = bounds, answered
        self._most = most
        self._limits = Limits(
            message_bytes=bounds.message_bytes, frames=bounds.frames, queue_bytes=bounds.message_bytes
        )
        self._lines: dict[str, _Line] = {}
        self._hosts: dict[str, _Host] = {}
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
        self._lines[ask.name] = line
        self._hosts.setdefault(line.host, _Host()).asked(ask.name)
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
        own, most = self._hosts.get(host) or _Host(), max(2, dials(self._most))
        if len(own.strange) >= min(OF_HOST, most // 2):
            found = self._idle(own.strange) or self._overdue(own.strange)
        elif len(self._lines) >= most:
            found = self._spare(own)
        else:
            return True
        if found:
            self._close(found)
        return bool(found)

    def _spare(self, own: _Host) -> str:
        """Return the name of a connection that goes for one of the host `own`, or "".

        It is one of the host that has most. That asked last goes first, as services are asked in turns: if
        the longest ago went, none would stay till its next turn.
        """
        largest = max(self._hosts.values(), key=len)
        if len(largest) > len(own) + 1:
            names = [*largest.strange, *largest.known]
            return self._idle(reversed(names)) or names[0]
        idle = self._idle(reversed(own.known)) or self._idle(own.strange) or self._idle(self._lines)
        return idle or self._overdue(own.strange) or self._overdue(own.known)

    def _idle(self, names: Iterable[str]) -> str:
        return next((name for name in names if self._lines[name].asked_s is None), "")

    def _overdue(self, names: Iterable[str]) -> str:
        now_s = self._loop.time()
        asked = ((name, self._lines[name].asked_s) for name in names)
        return next((name for name, at_s in asked if at_s is not None and now_s - at_s >= PATIENCE_S), "")

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
        is_known = self._answered(name, wire.parse(messages[-1].frames, self._bounds))
        if line is not None and is_known:
            self._hosts[line.host].answered(name)
        if self._waiting:
            self.go_on()

    def drop(self, name: str) -> None:
        """Close the connection to a service, if there is one, and ask it no more."""
        self._waiting.pop(name, None)
        if name in self._lines:
            self._close(name)

    def _close(self, name: str) -> None:
        line = self._lines.pop(name)
        host = self._hosts[line.host]
        host.leave(name)
        if not host:
            del self._hosts[line.host]
        line.socket.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._waiting.clear()
        for name in list(self._lines):
            self._close(name)
