"""The brokers of a topology: the one that a gateway runs, and the way to them all."""

import secrets
from asyncio import AbstractEventLoop

from appliance.lease import Candidacy
from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.leases.candidate import HEARTBEATS, Candidate
from bus.leases.table import Leases, LeaseTable
from bus.tmq.address import endpoint
from bus.tmq.broker.service import Broker
from bus.tmq.wire import Address
from bus.transports.urls import is_wildcard, split_url, with_host
from bus.wire.pattern import Pattern
from topologies.model import BridgeSpec, Topology
from topologies.model import Broker as BrokerSpec

HEARTBEAT_MS_MIN = 4


class BrokerPart:
    """A TMQ broker, which also leases bridges. Its peers are the other brokers of the file."""

    def __init__(self, name: str, spec: BrokerSpec, topology: Topology) -> None:
        self.name, self.spec = name, spec
        self.hub = Hub(name)  # nothing passes through a broker
        self.links: list[Link] = []
        self.leases = Leases(LeaseTable(spec.lease_ms))
        self.broker = Broker(
            [listen.url for listen in spec.listen],
            broker_addresses(topology),  # itself too: it finds that out
            self.leases.on_bridge,
            f"broker {name}",
            heartbeat_s=spec.heartbeat_ms / 1000,
        )

    def open(self, loop: AbstractEventLoop) -> None:
        self.broker.open(loop)
        self.leases.open(loop)

    def close(self) -> None:
        self.leases.close()
        self.broker.close()


def broker_addresses(topology: Topology) -> list[Address]:
    """Where the brokers are, in the order of the file. Raises `LinkError` for a name that is not known."""
    return [endpoint(broker_url(topology, broker)) for broker in topology.brokers.values()]


def broker_url(topology: Topology, broker: BrokerSpec) -> str:
    url = split_url(broker.listen[0].url)
    return (
        with_host(url, topology.gateways[broker.on].address)
        if is_wildcard(url.host)
        else broker.listen[0].url
    )


def candidacy_of(name: str, spec: BridgeSpec, topology: Topology, gateway: str) -> Candidacy | None:
    """Where several gateways run a bridge, our part in choosing the one that forwards."""
    if len(spec.on) == 1:
        return None
    brokers = broker_addresses(topology)
    if not brokers:
        raise LinkError(f"bridge {name}: several gateways run it, and there is no broker to choose one")
    lease_ms = min(broker.lease_ms for broker in topology.brokers.values())
    heartbeat_ms = max(HEARTBEAT_MS_MIN, int(lease_ms / HEARTBEATS))
    candidate = Candidate(
        Pattern(*spec.pattern), name, secrets.randbits(32) or 1, spec.on.index(gateway), len(brokers),
        gateway, heartbeat_ms,
    )  # fmt: skip
    return Candidacy(candidate, brokers, lambda: False)
