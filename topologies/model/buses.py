"""The records of buses and brokers."""

from dataclasses import dataclass
from typing import Annotated

from bridges.durable.settings import Durable
from bus.key_types import BusName, Bytes
from bus.key_types import Gateway as GatewayName
from bus.leases.settings import BrokerSettings
from bus.schema import Length, Record, Single
from bus.transports.options import (
    MESSAGE_BYTES,
    QUEUE_BYTES,
    check_fit,
    check_own_tls,
)
from topologies.model.addresses import Address, BrokerAddress, Dial, Listen


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpec(BrokerSettings):
    """A TMQ broker. Bridges and clients try the brokers in the order of the file."""

    on: Annotated[GatewayName, "the gateway that runs it"]
    listen: Annotated[
        tuple[BrokerAddress, ...],
        Length(1, 64),
        Single(),
        "its addresses; bridges dial the first with TLS, if there is one; all others the first without",
    ]

    def __post_init__(self) -> None:
        for address in self.listen:
            check_own_tls(address.url, address.tls, self.on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trunk(Record):
    """A bus of this file that a bus joins."""

    SHORT = "bus"
    bus: Annotated[BusName, "the bus: one of the two dials the trunk address of the other, with its `tls`"]
    durable: Annotated[Durable | None, "keep in a journal what that bus misses (docs/durable.md)"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BusSpec(Record):
    """A bus, which sends every message to all peers except its sender."""

    on: Annotated[GatewayName, "the gateway that runs it"]
    listen: Annotated[tuple[Listen, ...], Length(0, 64), Single(), "its addresses"] = ()
    dial: Annotated[tuple[Dial, ...], Length(0, 64), Single(), "other buses to join into one"] = ()
    trunks: Annotated[tuple[Trunk, ...], Length(0, 1024), Single(), "buses of this file to join"] = ()
    queue_bytes: Annotated[Bytes, "bound of the queue to each peer"] = QUEUE_BYTES
    message_bytes: Annotated[
        Bytes, "longest message accepted, without its envelope; a longer one ends the connection"
    ] = MESSAGE_BYTES

    def __post_init__(self) -> None:
        if len({trunk.bus for trunk in self.trunks}) != len(self.trunks):
            raise ValueError("the same bus is listed twice in trunks")
        links: tuple[Address | BusSpec, ...] = (self, *self.listen, *self.dial)
        for link in links:
            check_fit(*self.limits(link))
        for listen in self.listen:
            listen.check_at(self.on)

    def limits(self, link: "Address | BusSpec") -> tuple[int, int]:
        """Return `queue_bytes` and `message_bytes` of an address; those of the bus by default."""
        return link.queue_bytes or self.queue_bytes, link.message_bytes or self.message_bytes
