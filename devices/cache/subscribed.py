"""Subscribes to the services of a catalog, and turns their publications into frames."""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from bus.errors import FrameError, LinkError
from bus.ledger import Stats
from bus.serving.rejections import Rejections
from bus.transports.seats import dials
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.listing import Address, Listed
from devices.dbp.nodes.presence import NodeError
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

log = logging.getLogger("buscoupler.cache")

PUBLISHERS: Final = 1024
"""The most PUB interfaces at a time; further ones are left out and counted."""
_LOOK_S: Final = 1.0
_INTERFACE: Final = "pub"
_Key = tuple[str, Address]


def frame_of(service: str, message: list[bytes]) -> bytes:
    """Return a publication as a frame. Its pattern is the service and each part of the topic.

    The first frame of `message` is the topic, the others are the data. Raises `FrameError` if they do not fit
    a frame, or the topic is not UTF-8.
    """
    topic, *rest = message
    try:
        words = [word for word in topic.decode().split("/") if word]
        pattern = Pattern(service, *words)
    except (UnicodeDecodeError, ValueError) as error:
        raise FrameError(f"topic: {error}") from None
    return pack(PUB, pattern, b"".join(rest))


class Subscribed:
    """Reads a catalog each second, and subscribes to all publishers in it. `hears(frames)` gets their frames.

    `rejected` counts publications that fit no frame.
    """

    def __init__(self, catalog: str, hears: Callable[[list[bytes]], None]) -> None:
        self.fault = ""
        self._catalog, self._hears = catalog, hears
        self._stats = Stats()
        self._reject = Rejections("cache", self._stats.rejected, log)
        self._sockets: dict[_Key, Socket] = {}
        self._left_out = 0
        self._task: Task[None] | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        return {"publishers": len(self._sockets), "publishers_left_out": self._left_out}

    @property
    def rejected(self) -> Mapping[str, int]:
        """The counts of refused publications, by reason."""
        return self._stats.rejected

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to read the catalog."""
        self._loop = loop
        self._task = loop.create_task(self._watch())

    async def _watch(self) -> None:
        async with Client(self._catalog) as client:
            while True:
                try:
                    self.follow(await client.services())
                    self.fault = ""
                except (NodeError, LinkError) as error:
                    self._complain(str(error))
                await asyncio.sleep(_LOOK_S)

    def _complain(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("cache: %s; will go on asking", fault)
        self.fault = fault

    def follow(self, services: Mapping[str, Listed]) -> None:
        """Subscribe to exactly those of `services` that publish."""
        wanted = {
            (name, one.interfaces[_INTERFACE])
            for name, one in services.items()
            if _INTERFACE in one.interfaces
        }
        for key in self._sockets.keys() - wanted:
            self._sockets.pop(key).close()
        new = sorted(wanted - self._sockets.keys())
        room = max(0, dials(PUBLISHERS) - len(self._sockets))
        self._left_out = max(0, len(new) - room)
        for key in new[:room]:
            self._sockets[key] = self._socket(key)

    def _socket(self, key: _Key) -> Socket:
        name, address = key
        hears, lost = partial(self._on_messages, name), partial(self._on_lost, key)
        made = Socket("sub", hears, Limits(), f"cache: {name}", lost, self._stats)
        made.open(self._loop)
        made.subscribe(b"")
        made.connect(*address)
        return made

    def _on_messages(self, name: str, messages: list[Message]) -> None:
        frames = list[bytes]()
        for message in messages:
            try:
                frames.append(frame_of(name, message.frames))
            except FrameError:
                self._reject("no frame", message.host)
        self._hears(frames)

    def _on_lost(self, key: _Key, _: bytes) -> None:
        """Tell why a publisher's connection ended, if its publications are too long."""
        one = self._sockets.get(key)
        if one is not None and one.misfit:
            name, (host, _port) = key
            self._reject("framing", host, 0, f"{name} published {one.misfit}")  # its connection counted it

    def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for one in self._sockets.values():
            one.close()
        self._sockets.clear()
