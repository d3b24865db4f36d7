"""The syndication broker as a service: it listens for TCP clients, and serves them from the book."""

from asyncio import AbstractEventLoop
from collections.abc import Mapping, Sequence
from pathlib import Path

from bus import extras
from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.limits import Limits
from bus.serving.listener import Address
from bus.tmq.address import listening
from bus.transports.binding import Binding
from bus.urls import split_url
from devices.device import DeviceSpec
from devices.service import BusPort, Service
from devices.syndication.bounds import Bounds
from devices.syndication.device import SyndicationSpec, database_of

LIMITS = Limits(idle_s=3600.0, connections=2048, read_bytes=1 << 13)
"""A producer may wait long before its first value; clients that have sent nothing make room for others.

All that one read brings is cut at once, which delays other clients by some 8 us a message.
"""


class Syndication(Service):
    """A syndication broker. Raises `LinkError` for a missing library and for a wrong address."""

    def __init__(
        self,
        name: str,
        spec: DeviceSpec,
        bounds: Bounds = Bounds(),  # noqa: B008 (frozen)
        limits: Limits = LIMITS,
    ) -> None:
        assert isinstance(spec, SyndicationSpec)
        super().__init__(name, spec)
        self._spec = spec
        self._addresses = [_address(url) for url in spec.syndication]
        extras.check("the syndication broker", spec.needs())
        from devices.syndication.buses.bus_adapter import Buses  # late: they need an extra
        from devices.syndication.query import prepare
        from devices.syndication.server import Server
        from devices.syndication.storage.memory import Memory

        prepare()  # here, where a thread makes this service, and not when it starts

        self.memory = Memory(database_of(spec), bounds, name, self._on_fault)
        self.server = Server(name, bounds, limits, self.memory)
        self.buses = Buses(name, spec, self.server.exchange)

    @property
    def urls(self) -> Sequence[str]:
        return [f"tcp://{host}:{port}" for host, port in self.server.addresses or self._addresses]

    @property
    def bindings(self) -> Sequence[Binding[Address]]:
        return self.server.bindings

    @property
    def paths(self) -> Sequence[Path]:
        path = database_of(self._spec)
        return () if path is None else (path,)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self.server.counts, **self.memory.counts}

    @property
    def rejected(self) -> Mapping[str, int]:
        return self.server.stats.rejected

    @property
    def ledgers(self) -> Mapping[str, Stats]:
        return {"clients": self.server.stats}

    def start(self, loop: AbstractEventLoop) -> None:
        try:
            self.server.open(loop, self._addresses)
            exchange = self.server.exchange
            self.memory.open(loop, exchange.book, exchange.tell, self.server.accept)
        except LinkError:
            self.stop()
            raise
        self.buses.start(loop, dict(zip(self.spec.joins, self.ports, strict=True)))
        self.url, self.fault = ", ".join(self.urls), self.buses.fault
        self.state = "up"

    def adapts(self, spec: DeviceSpec) -> bool:
        if not isinstance(spec, SyndicationSpec):
            return False
        addresses = [_address(url) for url in spec.syndication]
        same = database_of(spec) == database_of(self._spec) and spec.rules == self._spec.rules
        return bool(addresses) and same

    def leave(self, spec: DeviceSpec) -> None:
        assert isinstance(spec, SyndicationSpec)
        self.spec = self._spec = spec
        self._addresses = [_address(url) for url in spec.syndication]
        self.server.leave(self._addresses)

    def adapt(self, spec: DeviceSpec, loop: AbstractEventLoop) -> None:
        try:
            self.server.listen(loop, self._addresses)
        finally:
            self.url = ", ".join(self.urls)

    def heard(self, port: BusPort, messages: list[bytes]) -> None:
        self.buses.heard(port, messages)

    def follow(self, other: Service) -> None:
        if isinstance(other, Syndication):
            self.memory.inherit(self.server.exchange.book, other.memory, other.server.exchange.book)

    def _on_fault(self, fault: str) -> None:
        self.condition = fault and f"metadata are not stored: {fault}"

    def stop(self) -> None:
        self.buses.stop()
        self.server.close()
        self.memory.close()


def _address(url: str) -> tuple[str, int]:
    if not url.startswith("tcp://"):
        raise LinkError(f"{url}: a syndication broker listens on tcp://HOST:PORT")
    try:
        parts = split_url(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from None
    if ":" in parts.host:
        raise LinkError(f"{url}: a syndication broker listens on IPv4 only")
    return listening(f"tcp://{parts.host}:{parts.port}")
