"""The services that stand on `bus.serving`, in one shape, so that tests can ask the same of all."""

import asyncio
from typing import Any, Protocol

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.limits import Limits, Quota
from bus.tmq.broker import Broker, ClientRules
from bus.tmq.broker.registry import Registry
from bus.tmq.wire import (
    HELLO,
    MESSAGE,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Cutter,
    Hello,
    pack_address,
    pack_hello,
)
from bus.wire.frame import pack
from tests.bus.serving.line_service import LineService

NEWS_BYTES = 1012
"""The bytes of one piece of news."""
_HERE = pack_address(("127.0.0.1", 1))
_LONG = tuple(range(250))


class Served(Protocol):
    """A running service, and what its clients say. `silence_s`: how long a greeted client may be silent."""

    log: str
    """The logger of what it refuses."""
    idle: bytes
    """An object that changes nothing, and completes no handshake."""
    long: bytes
    """An object of over 1000 bytes."""
    refused: tuple[bytes, str]
    """An object that is cut and refused, and with what reason."""
    illegal: bytes
    """What cannot be cut."""
    half: str
    """The reason of a connection that ends within an object."""
    flooded: str
    """The reason of what one host registers too much."""
    stats: Stats

    address: tuple[str, int]

    @property
    def connections(self) -> int:
        """The number of connections that are open."""

    @property
    def accepted(self) -> int:
        """The number of connections that there ever were."""

    @property
    def registered(self) -> int:
        """The number of things that clients have registered."""

    def greet(self) -> bytes:
        """Complete the handshake."""

    def signs(self, data: bytes) -> int:
        """Return the number of signs of life in `data`."""

    def register(self, number: int) -> bytes:
        """Register one of many things."""

    def follow(self, number: int) -> bytes:
        """Complete the handshake, and ask for all news, as one of several clients."""

    def news(self, number: int) -> bytes:
        """Make the service send one object of `NEWS_BYTES` to each client that asked."""

    def close(self) -> None:
        """Stop."""


class Lines:
    """The service of lines."""

    log, half, flooded = "lines", "half a line", "registrations of one host"
    idle, long = b"say nobody hello\n", b"say nobody %s\n" % (1000 * b"x")
    refused, illegal = (b"shout\n", "word"), b"say nobody \0\n"

    def __init__(self, per_host: int = 1000, silence_s: float = 60.0, **limits: Any) -> None:
        quota = Quota[Connection](total=10_000, per_key=10_000, per_host=per_host, weight=1 << 20)
        self._service = LineService(quota, silence_s, **limits)
        self.address, self.stats = self._service.address, self._service.stats
        self.listener = self._service.listener

    @property
    def connections(self) -> int:
        return len(self.listener.connections)

    @property
    def accepted(self) -> int:
        return self.listener.accepted

    @property
    def registered(self) -> int:
        return len(self._service.quota)

    def greet(self) -> bytes:
        return b"hello\n"

    def signs(self, data: bytes) -> int:
        return data.count(b"alive\n")

    def register(self, number: int) -> bytes:
        return b"join %d\n" % number

    def follow(self, number: int) -> bytes:
        return b"hello\njoin news\n"

    def news(self, number: int) -> bytes:
        return b"say news %s\n" % (b"%d" % (number % 10) * (NEWS_BYTES - 1))

    def close(self) -> None:
        self.listener.close()


class Packets:
    """A TMQ broker. News are new subscribers: it tells all publishers, and a long pattern makes them long."""

    log, half, flooded = "buscoupler.tmq", "half a packet", "registrations of one host"
    idle = pack(UNSUBSCRIBE, (9,), _HERE)
    long = pack(UNSUBSCRIBE, (9,), 125 * _HERE)
    refused = pack(MESSAGE, (1,)), "type 0x02"
    illegal = bytes.fromhex("46 01 ff ff 00000001")

    def __init__(self, per_host: int = 1000, silence_s: float = 60.0, **limits: Any) -> None:
        rules = ClientRules(
            connections=limits.pop("connections", None), unconnected=1 << 17, per_connection=1 << 17
        )
        registry = Registry(per_host=per_host)
        self._broker = Broker("tcp://127.0.0.1:0", rules=rules, registry=registry, **limits)
        self._broker.open(asyncio.get_running_loop())
        self.address, self.stats = self._broker.addresses[0], self._broker.stats
        self._silence_ms = int(1000 * silence_s)

    @property
    def connections(self) -> int:
        return self._broker.counts["connections"]

    @property
    def accepted(self) -> int:
        return self._broker.counts["accepted"]

    @property
    def registered(self) -> int:
        return len(self._broker.registry)

    def greet(self) -> bytes:
        return pack_hello(Hello(1, self._silence_ms))

    def signs(self, data: bytes) -> int:
        return sum(frame[0] == HELLO for frame in Cutter().cut(data))

    def register(self, number: int) -> bytes:
        return pack(SUBSCRIBE, (number,), _HERE)

    def follow(self, number: int) -> bytes:
        where = "127.0.0.1", 1 + number
        hello = pack_hello(Hello(1, self._silence_ms, address=where))
        return hello + pack(PUBLISH, _LONG, pack_address(where))

    def news(self, number: int) -> bytes:
        return pack(SUBSCRIBE, (), pack_address((f"10.0.0.{number % 250}", 1 + number // 250)))

    def close(self) -> None:
        self._broker.close()


class Publications:
    """A syndication broker, with tagged clients. They register producers. It has no sign of life of its own.

    Its answer to a query stands for one: that query completes the handshake, and matches nothing.
    """

    log, half, flooded = "buscoupler.syndication", "half a message", "speakers of one host"
    idle, refused, illegal = b"\3\x80", (b"\0\x91\1", "publication"), b"\x7f"
    long = b"\0\x93\xa1p\x80\xc5\4\0" + bytes(1024)

    def __init__(self, per_host: int = 1000, silence_s: float = 60.0, **limits: Any) -> None:
        from devices.syndication.bounds import Bounds
        from devices.syndication.server import Server  # late: it needs an extra

        self._server = Server("syndication", Bounds(speakers_per_host=per_host), Limits(**limits))
        self._server.open(asyncio.get_running_loop(), [("127.0.0.1", 0)])
        (self.address,) = self._server.addresses
        self._server.accept()
        self.stats = self._server.stats

    @property
    def connections(self) -> int:
        return self._server.counts["connections"]

    @property
    def accepted(self) -> int:
        return self._server.counts["accepted"]

    @property
    def registered(self) -> int:
        return self._server.counts["producers"]

    def greet(self) -> bytes:
        return b"\1\x81\xa5Query\xa9has never"

    def signs(self, data: bytes) -> int:
        return data.count(b"\2\x82\xa3New")

    def register(self, number: int) -> bytes:
        return b"\0\x93\xa4%4d\x80\xc0" % number

    def follow(self, number: int) -> bytes:
        return b"\1\x81\xa5Query\xa0"

    def news(self, number: int) -> bytes:
        head = b"\0\x83\xa4UUID\xa4news\xa8Metadata\x80\xa5Value"
        size = NEWS_BYTES - len(head) - 3
        return head + b"\xc5" + size.to_bytes(2, "big") + bytes(size)

    def close(self) -> None:
        self._server.close()
