"""Clients of both generations, on sockets of 127.0.0.1 that tests control, and the broker that they meet."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgpack

from bus.serving.limits import Limits
from bus.tmq.wire import Address
from devices.syndication.bounds import Bounds
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import Syndication
from tests.helpers.peers import until


class TcpGuest:
    """A client: `said` are the objects that it was told, without their tags."""

    def __init__(self, tagged: bool) -> None:
        self.tagged = tagged
        self.said: list[Any] = []
        self.gone = False
        self._rest = b""
        self._socket = socket.socket()
        self._loop = asyncio.get_running_loop()

    async def connect(self, address: Address, host: str = "127.0.0.1") -> "TcpGuest":
        self._socket.setblocking(False)
        self._socket.bind((host, 0))
        await self._loop.sock_connect(self._socket, address)
        self._loop.add_reader(self._socket, self._read)
        return self

    def _read(self) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = self._socket.recv(1 << 20)
        if not data:
            self.gone = True
            self.stop_reading()
        self._rest += data
        while self._rest:
            unpacker = msgpack.Unpacker(strict_map_key=False)
            unpacker.feed(self._rest[self.tagged :])
            try:
                self.said.append(unpacker.unpack())
            except msgpack.OutOfData:
                return
            self._rest = self._rest[self.tagged + unpacker.tell() :]

    def stop_reading(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)

    async def say(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def subscribe(self, query: str) -> None:
        await self.say(query_of(query, self.tagged))

    async def publish(self, id: str, metadata: Any = None, value: Any = None) -> None:
        await self.say(publication_of(id, metadata, value, self.tagged))

    async def told(self, *objects: Any) -> None:
        """Wait until it was told these objects, since it was asked last."""
        await until(lambda: len(self.said) >= len(objects) or self.gone)
        assert self.said == list(objects)
        self.said.clear()

    def close(self) -> None:
        self.stop_reading()
        self._socket.close()


def query_of(text: str, tagged: bool) -> bytes:
    packed: bytes = msgpack.packb({"Query": text, "UUID": "s"} if tagged else text)
    return b"\1" * tagged + packed


def publication_of(id: str, metadata: Any = None, value: Any = None, tagged: bool = False) -> bytes:
    said = {"UUID": id, "Metadata": metadata, "Value": value} if tagged else [id, metadata, value]
    packed: bytes = msgpack.packb(said)
    return b"\0" * tagged + packed


def published(id: str, metadata: Any, value: Any, tagged: bool) -> Any:
    """Return what a subscriber is told of a publication."""
    return {"UUID": id, "Metadata": metadata, "Value": value} if tagged else [id, metadata, value]


def difference(new: Sequence[Any] = (), gone: Sequence[Any] = ()) -> Any:
    return {"New": list(new), "Del": list(gone)}


class Home:
    """A running broker, and its clients. At its end, the ledger must balance."""

    def __init__(self, service: Syndication) -> None:
        self.service = service
        self.server = service.server
        self.address = _endpoint(service.urls[0])
        self._guests: list[TcpGuest] = []

    async def guest(self, tagged: bool = False, host: str = "127.0.0.1") -> TcpGuest:
        guest = await TcpGuest(tagged).connect(self.address, host)
        self._guests.append(guest)
        return guest

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    def close(self) -> None:
        for guest in self._guests:
            guest.close()
        self.service.close()
        stats = self.server.stats
        assert stats.balance() == stats.queued == stats.queued_bytes == 0
        book = self.server.exchange.book.counts
        assert (book["producers"], book["subscriptions"], book["queries"], book["selections"]) == (0, 0, 0, 0)


def _endpoint(url: str) -> Address:
    host, _, port = url.removeprefix("tcp://").rpartition(":")
    return host, int(port)


@asynccontextmanager
async def home(
    bounds: Bounds = Bounds(),  # noqa: B008 (frozen)
    port: int = 0,
    **limits: Any,
) -> AsyncIterator[Home]:
    spec = SyndicationSpec(on="gw", syndication=(f"tcp://127.0.0.1:{port}",))
    service = Syndication("s", spec, bounds, Limits(**limits))
    service.start(asyncio.get_running_loop())
    made = Home(service)
    try:
        yield made
    finally:
        made.close()
