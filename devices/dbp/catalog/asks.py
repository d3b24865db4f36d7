"""Sends pings to services, over connections to their ROUTER sockets.

Anybody can list services at any address, so only connections that a service has answered are many, and hosts
share all: those of one that lists many silent services take none from the services of another.
"""

import time
from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable, Container, Iterable
from functools import partial
from math import inf
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
"""A connection whose ping is not answered for so long goes if another service needs it."""
BEGUN_MAX: Final = 32
"""The connections that are begun in one turn of the loop: each takes up to half a millisecond."""

Answered = Callable[[str, Received | Refused], bool]
"""A function that takes the name of a service, and its answer, and tells whether that is a service's."""


class _Line:
    """The connection to a service of `host`."""

    __slots__ = ("address", "host", "socket")

    def __init__(self, address: Address, host: str, socket: Socket) -> None:
        self.address, self.host, self.socket = address, host, socket


class _Host:
    """The names of a host's services with connections: those that have answered, and those that have not.

    The one asked longest ago comes first, by the first question without an answer.
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
        self._asked_s = dict[str, float]()  # without an answer, since when; the first comes first
        self._idle = dict[str, None]()  # those whose ping was answered, the earliest first
        self._largest = 0  # no host has more connections
        self._begun = 0  # in this turn
        self._turn: Handle | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def waiting(self) -> Container[str]:
        """The names of the services whose pings wait."""
        return self._waiting

    def ask(self, loop: AbstractEventLoop, ask: Ask, address: Address) -> None:
        """Send a ping to the ROUTER of a service at `address`, or let it wait for a connection."""
        self._loop = loop
        line = self._lines.get(ask.name)
        if line is not None and (line.address, line.host) != (address, ask.host):
            self._close(ask.name)
            line = None
        if line is None and (self._begun >= BEGUN_MAX or not self._make_room(ask.host)):
            self._waiting[ask.name] = ask, address
            return
        self._send(ask, line or self._connect(ask.name, address, ask.host))

    def _send(self, ask: Ask, line: _Line) -> None:
        self._waiting.pop(ask.name, None)
        self._lines[ask.name] = line
        if ask.name not in self._asked_s:
            host = self._hosts.setdefault(line.host, _Host())
            host.asked(ask.name)
            self._largest = max(self._largest, len(host))
            self._idle.pop(ask.name, None)
            self._asked_s[ask.name] = self._loop.time()
        self.asked += 1
        line.socket.send(wire.pack(Command(wire.PING), ask.binary_time, time.time()))

    def _forget(self, name: str) -> None:
        self._asked_s.pop(name, None)
        self._idle.pop(name, None)

    def _connect(self, name: str, address: Address, host: str) -> _Line:
        self._begun += 1
        self._go_on_soon()
        made = Socket("dealer", partial(self._on_messages, name), self._limits)
        made.open(self._loop)
        made.connect(*address)
        return _Line(address, host, made)

    def _make_room(self, host: str) -> bool:
        """Close a connection if one more to a service of `host` needs it. Return whether there is room."""
        own, most = self._hosts.get(host) or _Host(), max(2, dials(self._most))
        if len(own.strange) >= min(OF_HOST, most // 2):
            found = self._idle_of(own.strange) or self._overdue(own.strange)
        elif len(self._lines) >= most:
            found = self._spare(own)
        else:
            return True
        if found:
            self._close(found)
        return bool(found)

    def _spare(self, own: _Host) -> str:
        """Return the name of a connection that goes for one of the host `own`, or "".

        It is one of the host that has most; or else one that is not answered, whoever has it: the silence of
        many hosts leaves none to the others. That asked last goes first, as services are asked in turns: if
        the longest ago went, none would stay till its next turn.
        """
        if names := self._of_larger(len(own) + 1):
            return self._idle_of(reversed(names)) or names[0]
        idle = self._idle_of(reversed(own.known)) or self._idle_of(own.strange)
        return idle or self._overdue(self._asked_s) or next(iter(self._idle), "")

    def _of_larger(self, most: int) -> list[str]:
        """Return the connections of the host that has most, none if that has no more than `most`."""
        if self._largest <= most:
            return []
        largest = max(self._hosts.values(), key=len)
        self._largest = len(largest)
        return [*largest.strange, *largest.known] if len(largest) > most else []

    def _idle_of(self, names: Iterable[str]) -> str:
        return next((name for name in names if name in self._idle), "")

    def _overdue(self, names: Iterable[str]) -> str:
        """Return the first name, if that connection has had no answer for long, else ""."""
        name = next(iter(names), "")
        return name if self._loop.time() - self._asked_s.get(name, inf) >= PATIENCE_S else ""

    def go_on(self) -> None:
        """Send the pings that wait, as far as there is room. Call it some times a second."""
        if self._turn is not None:
            self._turn.cancel()
        self._turn, self._begun = None, 0
        full = set[str]()
        for ask, address in list(self._waiting.values()):
            if self._begun >= BEGUN_MAX:
                break
            if ask.host not in full:
                self.ask(self._loop, ask, address)
                full |= {ask.host} if ask.name in self._waiting else set()

    def _go_on_soon(self) -> None:
        """Go on in the next turn: what happens in this one does it once."""
        if self._turn is None:
            self._turn = self._loop.call_soon(self.go_on)

    def _on_messages(self, name: str, messages: list[Message]) -> None:
        line = self._lines.get(name)
        if line is not None:
            self._forget(name)
            self._idle[name] = None
        is_known = self._answered(name, wire.parse(messages[-1].frames, self._bounds))
        if line is not None and is_known:
            self._hosts[line.host].answered(name)
        if self._waiting:
            self._go_on_soon()

    def drop(self, name: str) -> None:
        """Close the connection to a service, if there is one, and ask it no more."""
        self._waiting.pop(name, None)
        if name in self._lines:
            self._close(name)

    def _close(self, name: str) -> None:
        line = self._lines.pop(name)
        self._forget(name)
        host = self._hosts[line.host]
        host.leave(name)
        if not host:
            del self._hosts[line.host]
        line.socket.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        for name in list(self._lines):
            self._close(name)
