"""A client of DBP: it asks a catalog for the addresses of services, and then talks to these directly."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Final, NamedTuple, Self

from bus.backoff import Backoff
from bus.wire.batch import check_bytes
from devices.dbp.beacon.finding import WITHIN_S, find_catalog
from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.wire import Command, Received
from devices.dbp.nodes import requests
from devices.dbp.nodes.asking import Asker, Ended
from devices.dbp.nodes.line import check_catalog
from devices.dbp.nodes.listing import Address, Listed, read_listing
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.requests import ERROR, Request, check_asked
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket

TIMEOUT_S: Final = 5.0
SERVICES_MAX: Final = 64  # open connections to services; beyond, the one used longest ago is closed
WAITING_MAX: Final = 1024  # queued publications; beyond, the oldest is dropped and counted
_REPLY_BYTES: Final = 8 << 20  # more than the longest reply of a catalog
LISTING: Final = Bounds(message_bytes=_REPLY_BYTES, depth=Bounds().depth + 1, items=_REPLY_BYTES // 2)
"""The bounds of a catalog's reply, which has services within an object. An item has at least two bytes."""
_USUAL_BYTES: Final = Limits().message_bytes
_LISTING_LIMITS: Final = Limits(message_bytes=_REPLY_BYTES)


_GIVE: Final = "give the client the `limits` of the service"


def _ended(who: str, end: Ended, request: Sequence[bytes]) -> str:
    """Return in words that a connection ended before an answer, and why, as far as that can be known."""
    if end.misfit:
        return f"{who} answered with {end.misfit}: {_GIVE}"
    size_bytes = sum(map(len, request))
    small = f": it may take less than the {size_bytes} bytes of the request (`limits` of the service)"
    return f"{who} ended the connection before it answered{small if size_bytes > _USUAL_BYTES else ''}"


class Publication(NamedTuple):
    """A message of a PUB socket: its first frame as the topic, and the other frames joined."""

    topic: str
    data: bytes


class Client:
    """A client of a catalog and its services. Use it with `async with`.

    `catalog` is `tcp://HOST:PORT`; without it, the client listens for the beacon of one. Each request waits
    at most `timeout_s` seconds. `limits` are those of connections to services. `dropped` counts publications
    that were not taken in time. Raises `LinkError` for a wrong `catalog`, and on entry if no beacon is
    heard.
    """

    def __init__(
        self, catalog: str | None = None, *, timeout_s: float = TIMEOUT_S, limits: Limits | None = None
    ) -> None:
        self.dropped = 0
        self._url, self._timeout_s, self._limits = catalog, timeout_s, limits or Limits()
        self._catalog: Asker | None = None
        self._askers: dict[str, Asker] = {}
        if catalog is not None:
            check_catalog(catalog)

    async def __aenter__(self) -> Self:
        url = self._url or await find_catalog(max(WITHIN_S, self._timeout_s))
        self._catalog = Asker(check_catalog(url), _LISTING_LIMITS)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def services(self) -> dict[str, Listed]:
        """Return all listed services by name. Raises `NodeError` if the catalog does not answer."""
        return read_listing((await self._info(b"")).fields)

    async def find(self, name: str) -> Listed:
        """Return the listed service with a name. Raises `NodeError` if there is none, or no answer comes."""
        received = await self._info(name.encode())
        found = read_listing(received.fields).get(name)
        if found is None:
            raise NodeError(f"{name} is not listed")
        return found

    async def _info(self, name: bytes) -> Received:
        received = await self.tell(Command(wire.INFO_REQUEST, (name,)))
        if received.word != wire.INFO_REPLY:
            raise NodeError(f"the catalog at {self.host} did not answer with its list: is it a catalog?")
        return received

    async def tell(self, command: Command) -> Received:
        """Send a command to the catalog, and return its answer. Raises `NodeError` if none comes."""
        assert self._catalog is not None, "use the client with `async with`"
        frames = wire.pack(command, False, time.time())
        try:
            received = wire.parse(await self._catalog.ask(frames, self._timeout_s), LISTING)
        except TimeoutError:
            why = self._catalog.fault and f": {self._catalog.fault}"
            raise NodeError(f"the catalog gave no answer within {self._timeout_s:g} s{why}") from None
        except Ended as end:
            raise NodeError(_ended(f"the catalog at {self.host}", end, frames)) from None
        if not isinstance(received, Received):
            raise NodeError(f"the catalog at {self.host} gave a malformed answer: {received.reason}")
        return received

    @property
    def host(self) -> str:
        """The host of the catalog."""
        assert self._catalog is not None, "use the client with `async with`"
        return self._catalog.address[0]

    async def ask(self, name: str, word: str, *body: bytes) -> tuple[bytes, ...]:
        """Send a request to the service `name`, and return the frames of its reply's body.

        Raises `NodeError` if the service is not listed, has no interface `router`, does not answer, or
        refuses, or if the request is too long, ValueError for a word that no request can have, and TypeError
        for a body that is not bytes.
        """
        for frame in body:
            check_bytes(frame, "a body")
        check_asked(word)
        frames = requests.pack(Request(word, body or (b"",)), time.time())
        if not requests.fits(frames, self._limits):
            raise NodeError(f"the request is longer than the {self._limits.message_bytes} bytes of `limits`")
        reply = await self._reply(name, frames)
        if reply.word == ERROR.decode():
            raise NodeError(f"{name} refused: {reply.data.decode(errors='replace')}")
        return reply.body

    async def _reply(self, name: str, frames: list[bytes]) -> Request:
        asker = await self._asker(name)
        try:
            frames = await asker.ask(frames, self._timeout_s)
        except TimeoutError:
            self._forget(name, asker)  # the service may be elsewhere by now
            why = asker.fault and f": {asker.fault}"
            raise NodeError(f"{name} gave no answer within {self._timeout_s:g} s{why}") from None
        except Ended as end:
            self._forget(name, asker)
            if not end.was_sent:
                return await self._reply(name, frames)
            raise NodeError(_ended(name, end, frames)) from None
        finally:
            if self._askers.get(name) is not asker and not asker.users:
                asker.close()
        reply = requests.parse(frames)
        if not isinstance(reply, Request):
            raise NodeError(f"{name} gave a malformed answer: {reply}")
        return reply

    def _forget(self, name: str, asker: Asker) -> None:
        if self._askers.get(name) is asker:
            del self._askers[name]

    async def _asker(self, name: str) -> Asker:
        """Return the one connection to a service, which is then the one used last."""
        address = None if self._is_known(name) else (await self.find(name)).router
        asker = self._askers.pop(name) if self._is_known(name) else None  # another task may have made it
        if asker is None:
            if address is None:
                raise NodeError(f"{name} has no interface router")
            self._make_room()
            asker = Asker(address, self._limits, once=True)
        self._askers[name] = asker
        return asker

    def _is_known(self, name: str) -> bool:
        return name in self._askers and not self._askers[name].is_over

    def _make_room(self) -> None:
        """Close the connection used longest ago; one in use is closed once it is not."""
        if len(self._askers) < SERVICES_MAX:
            return
        idle = (name for name, asker in self._askers.items() if not asker.users)
        asker = self._askers.pop(next(idle, next(iter(self._askers))))
        if not asker.users:
            asker.close()

    async def subscribe(
        self, name: str, topic: str = "", interface: str = "pub"
    ) -> AsyncGenerator[Publication, None]:
        """Yield publications of the service `name` whose topic begins with `topic`.

        `interface` is the name of its PUB socket. When the connection ends, the service is looked up again,
        for ever: it may be elsewhere, and another one in its place. Raises `NodeError` if it is not listed or
        has no such interface at first, and for a publication beyond the `limits`.
        """
        address, pauses = await self._publisher(name, interface), self._pauses()
        while True:
            async with aclosing(self.hear(address, topic.encode(), once=True)) as received:
                async for first, *rest in received:
                    pauses.reset()
                    yield Publication(first.decode(errors="replace"), b"".join(rest))
            address = await self._found_again(name, interface, pauses)

    async def _found_again(self, name: str, interface: str, pauses: Backoff) -> Address:
        while True:
            await asyncio.sleep(pauses.next_s())
            with suppress(NodeError):
                return await self._publisher(name, interface)

    def _pauses(self) -> Backoff:
        limits = self._limits
        return Backoff(limits.retry_min_s, limits.retry_max_s, random.uniform)

    async def _publisher(self, name: str, interface: str) -> Address:
        address = (await self.find(name)).interfaces.get(interface)
        if address is None:
            raise NodeError(f"{name} has no interface {interface}")
        return address

    async def hear(
        self, address: Address, topic: bytes, limits: Limits | None = None, once: bool = False
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the frames of messages of the PUB socket at `address` that begin with `topic`.

        With `once` this ends with the connection, or if there is none in time. Raises `NodeError` for a
        message beyond the `limits`: it would end each connection.
        """
        loop, waiting = asyncio.get_running_loop(), asyncio.Queue[list[bytes]]()
        limits = limits or self._limits

        def hears(messages: list[Message]) -> None:
            for message in messages:
                if waiting.qsize() >= WAITING_MAX:
                    waiting.get_nowait()
                    self.dropped += 1
                waiting.put_nowait(message.frames)

        def end() -> None:
            if (once or sub.misfit) and not sub.peers:
                sub.close()
                waiting.put_nowait([])

        sub = Socket("sub", hears, limits, lost=lambda _: end())
        sub.open(loop)
        sub.subscribe(topic)
        sub.connect(*address)
        timer = loop.call_later(limits.handshake_s, end)
        try:
            while frames := await waiting.get():
                yield frames
            if sub.misfit:
                raise NodeError("{}:{} published {}: {}".format(*address, sub.misfit, _GIVE))
        finally:
            timer.cancel()
            sub.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        for asker in [*self._askers.values(), *([self._catalog] if self._catalog else [])]:
            asker.close()
        self._askers.clear()
