"""Sends pings to services, over connections to their ROUTER sockets."""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial

from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Address
from devices.dbp.catalog.outcomes import Ask
from devices.dbp.catalog.wire import Command, Received, Refused
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

ASKED_MAX = 1024  # open connections to services; beyond, the one used longest ago is closed

Answered = Callable[[str, Received | Refused], object]
"""Takes the name of a service, and its answer."""


class Asks:
    """The connections to services. `asked` counts the pings sent."""

    def __init__(self, bounds: Bounds, answered: Answered, most: int = ASKED_MAX) -> None:
        self.asked = 0
        self._bounds, self._answered, self._most = bounds, answered, most
        self._limits = Limits(
            message_bytes=bounds.message_bytes, frames=bounds.frames, queue_bytes=bounds.message_bytes
        )
        self._sockets: dict[str, tuple[Address, Socket]] = {}

    def __len__(self) -> int:
        return len(self._sockets)

    def ask(self, loop: AbstractEventLoop, ask: Ask, address: Address) -> None:
        """Send a ping to the ROUTER of a service at `address`."""
        known, made = self._sockets.pop(ask.name, (address, None))
        if made is None or known != address:
            if made is not None:
                made.close()
            made = self._connect(loop, ask.name, address)
        self._sockets[ask.name] = address, made
        self.asked += 1
        made.send(wire.pack(Command(wire.PING), ask.binary_time, time.time()))

    def _connect(self, loop: AbstractEventLoop, name: str, address: Address) -> Socket:
        if len(self._sockets) >= self._most:
            self._close(next(iter(self._sockets)))
        made = Socket("dealer", partial(self._on_messages, name), self._limits)
        made.open(loop)
        made.connect(*address)
        return made

    def _on_messages(self, name: str, messages: list[Message]) -> None:
        self._answered(name, wire.parse(messages[-1].frames, self._bounds))

    def drop(self, name: str) -> None:
        """Close the connection to a service, if there is one."""
        if name in self._sockets:
            self._close(name)

    def _close(self, name: str) -> None:
        self._sockets.pop(name)[1].close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        for name in list(self._sockets):
            self._close(name)
