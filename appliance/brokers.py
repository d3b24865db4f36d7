"""The brokers of a topology: the one that a gateway runs, and the way to them all."""

import secrets
from asyncio import AbstractEventLoop

from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.leases.candidate import Candidate
from bus.leases.service import LeasingBroker
from bus.tmq.address import endpoint
from bus.tmq.wire import Address
from bus.transports.urls import is_wildcard, split_url, with_host
from bus.wire.pattern import Pattern
from topologies.model import BridgeSpec, BrokerSpec, Topology


class BrokerPart:
    """A broker of a topology. Its peers are the other brokers of the file."""

    def __init__(self, name: str, spec: BrokerSpec, topology: Topology) -> None:
        self.name, self.spec = name, spec
        self.hub = Hub(name)  # nothing passes through a broker
        self.links: list[Link] = []
        self.service = LeasingBroker(
            [listen.url for listen in spec.listen],
            broker_addresses(topology),  # its own too: it recognises that
            spec.lease_ms,
            name=f"broker {name}",
            heartbeat_s=spec.heartbeat_ms / 1000,
        )

    def open(self, loop: AbstractEventLoop) -> None:
        self.service.open(loop)

    def close(self) -> None:
        self.service.close()


def broker_addresses(topology: Topology) -> list[Address]:
    """Return the brokers' addresses, in the order of the file. Raises `LinkError` for an unknown host."""
    return [endpoint(broker_url(topology, broker)) for broker in topology.brokers.values()]


def broker_url(topology: Topology, broker: BrokerSpec) -> str:
    """Return the URL at which the other gateways reach a broker."""
    url = split_url(broker.listen[0].url)
    return (
        with_host(url, topology.gateways[broker.on].address)
        if is_wildcard(url.host)
        else broker.listen[0].url
    )


def candidate_of(name: str, spec: BridgeSpec, topology: Topology, gateway: str) -> Candidate | None:
    """Return this gateway's candidate for a bridge that several gateways run, None for any other bridge."""
    if len(spec.on) == 1:
        return None
    if not topology.brokers:
        raise LinkError(f"bridge {name}: several gateways run it, and there is no broker to choose one")
    return Candidate(
        Pattern(*spec.pattern),
        name,
        id=secrets.randbits(32) or 1,
        order=spec.on.index(gateway),
        brokers=len(topology.brokers),
        name=gateway,
        lease_ms=min(broker.lease_ms for broker in topology.brokers.values()),
    )
