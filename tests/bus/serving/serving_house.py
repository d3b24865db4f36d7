"""A service with clients on sockets that tests control: their hosts, what they say, whether they read."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from tests.bus.serving.services import Served
from tests.helpers.peers import until

FAST: dict[str, Any] = {"heartbeat_s": 0.05, "idle_s": 0.3}
ONE, OTHER = "127.0.0.1", "127.0.0.2"
S = TypeVar("S", bound=Served)


class Guest:
    """A client: `heard` is all that it has read, until it stops reading."""

    def __init__(self) -> None:
        self.heard = b""
        self.gone = False
        self._socket = socket.socket()
        self._loop = asyncio.get_running_loop()

    async def connect(self, host: str, address: tuple[str, int], receive_bytes: int) -> None:
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._socket.bind((host, 0))
        await self._loop.sock_connect(self._socket, address)
        self._loop.add_reader(self._socket, self._read)

    def _read(self) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = self._socket.recv(1 << 20)
        self.heard += data
        if not data:
            self.gone = True
            self.stop_reading()

    def has_heard(self, size: int) -> bool:
        return len(self.heard) >= size

    def stop_reading(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)

    async def say(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    def close(self) -> None:
        self.stop_reading()
        self._socket.close()


class House(Generic[S]):
    """A service of one kind, and clients of it. At the end it closes all, and checks the ledger."""

    service: S

    def __init__(self, kind: Callable[..., S]) -> None:
        self._kind = kind
        self._guests: list[Guest] = []

    def serve(self, per_host: int = 1000, silence_s: float = 60.0, **limits: float) -> S:
        self.service = self._kind(per_host, silence_s, **{**FAST, **limits})
        return self.service

    async def come(self, said: bytes = b"", host: str = ONE, receive_bytes: int = 1 << 20) -> Guest:
        """Connect from `host`, say something, and wait until the service has accepted it."""
        guest, before = Guest(), self.service.accepted
        self._guests.append(guest)
        await guest.connect(host, self.service.address, receive_bytes)
        await guest.say(said)
        await until(lambda: self.service.accepted > before)
        return guest

    async def join(self, numbers: Iterable[int]) -> list[Guest]:
        """Connect once for each number, complete the handshake, and register it."""
        guests = []
        for number in numbers:
            before = self.service.registered
            guests.append(await self.come(self.service.greet() + self.service.register(number)))
            await until(lambda: self.service.registered > before)  # noqa: B023 (waits here)
        return guests

    def close(self) -> None:
        for guest in self._guests:
            guest.close()
        self.service.close()
        stats = self.service.stats
        assert stats.balance() == stats.queued == stats.queued_bytes == self.service.connections == 0
