"""The broker that a gateway runs, and the candidates that its bridges send to all brokers."""

import secrets
import zlib
from asyncio import AbstractEventLoop
from typing import TYPE_CHECKING, NamedTuple

from appliance.parts.changes import Change
from appliance.parts.site import BasePart, Revision, Site
from bus.errors import LinkError
from bus.leases.candidate import Candidate
from bus.schema import Names
from bus.wire.pattern import Pattern
from topologies.segments import broker_urls

if TYPE_CHECKING:
    from bus.leases.service import LeasingBroker


class BrokerPart(BasePart):
    """A broker of a topology. Its peers are the other brokers of the file."""

    kind = "broker"

    def __init__(self, name: str, site: Site) -> None:
        self.service = _service(name, site)
        super().__init__(name, site, self.service.hub)

    def revise(self, site: Site) -> Revision:
        """Return the change to the brokers that `site` describes: they know each other."""
        if same_brokers(site, self.site):
            return Revision([])
        service = _service(self.name, site)

        def close() -> None:
            self.close()
            self.site, self.service, self.hub = site, service, service.hub

        return Revision([Change("changed", self.title)], close, self.start)

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        try:
            self.service.open(loop)
        except LinkError as error:
            return [Change("failed", self.title, detail=str(error))]
        return []

    def close(self) -> None:
        self.service.close()


def _service(name: str, site: Site) -> "LeasingBroker":
    from bus.leases.service import LeasingBroker  # late: few gateways run a broker

    spec = site.topology.brokers[name]
    return LeasingBroker(
        [listen.url for listen in spec.listen],
        broker_urls(site.topology),  # its own too: it recognises that
        spec,
        name=f"broker {name}",
    )


def same_brokers(one: Site, other: Site) -> bool:
    """Return whether two sites have the same brokers at the same addresses."""
    a, b = one.topology, other.topology
    return a.brokers == b.brokers and broker_urls(a) == broker_urls(b)


class Standing(NamedTuple):
    """What makes this gateway's copy of a bridge the candidate that it is; equal ones are the same."""

    pattern: Names
    bridge: str
    on: int  # its place in the list
    brokers: tuple[str, ...]
    gateway: str
    lease_ms: int
    origin: int


def standing_of(bridge: str, site: Site) -> Standing | None:
    """Return what this gateway stands for with a bridge that several gateways run, None for any other."""
    topology, spec = site.topology, site.topology.bridges[bridge]
    if len(spec.on) == 1:
        return None
    return Standing(
        spec.pattern,
        bridge,
        on=spec.on.index(site.gateway),
        brokers=tuple(broker_urls(topology)),
        gateway=site.gateway,
        lease_ms=min(broker.lease_ms for broker in topology.brokers.values()),
        origin=zlib.crc32(f"{topology.name}/bridge {bridge}".encode()),  # all candidates stamp alike
    )


def candidate_of(standing: Standing) -> Candidate:
    """Return a new candidate."""
    return Candidate(
        Pattern(*standing.pattern),
        standing.bridge,
        id=secrets.randbits(32) or 1,
        order=standing.on,
        brokers=len(standing.brokers),
        name=standing.gateway,
        lease_ms=standing.lease_ms,
    )
