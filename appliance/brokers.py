"""The broker that a gateway runs, and the candidates that its bridges send to all brokers."""

import secrets
from asyncio import AbstractEventLoop

from appliance.site import BasePart, Site
from bus.leases.candidate import Candidate
from bus.wire.pattern import Pattern
from topologies.segments import broker_urls


class BrokerPart(BasePart):
    """A broker of a topology. Its peers are the other brokers of the file."""

    kind = "broker"

    def __init__(self, name: str, site: Site) -> None:
        from bus.leases.service import LeasingBroker  # late: few gateways run a broker

        spec = site.topology.brokers[name]
        self.service = LeasingBroker(
            [listen.url for listen in spec.listen],
            broker_urls(site.topology),  # its own too: it recognises that
            spec,
            name=f"broker {name}",
        )
        super().__init__(name, site, self.service.hub)

    def stays(self, site: Site) -> bool:
        """Return whether `site` describes the same brokers: they know each other."""
        return same_brokers(site, self.site)

    def open(self, loop: AbstractEventLoop) -> None:
        self.service.open(loop)

    def close(self) -> None:
        self.service.close()


def same_brokers(one: Site, other: Site) -> bool:
    """Return whether two sites have the same brokers at the same addresses."""
    a, b = one.topology, other.topology
    return a.brokers == b.brokers and broker_urls(a) == broker_urls(b)


def candidate_of(bridge: str, site: Site) -> Candidate | None:
    """Return this gateway's candidate for a bridge that several gateways run, None for any other bridge."""
    topology, spec = site.topology, site.topology.bridges[bridge]
    if len(spec.on) == 1:
        return None
    return Candidate(
        Pattern(*spec.pattern),
        bridge,
        id=secrets.randbits(32) or 1,
        order=spec.on.index(site.gateway),
        brokers=len(topology.brokers),
        name=site.gateway,
        lease_ms=min(broker.lease_ms for broker in topology.brokers.values()),
    )
