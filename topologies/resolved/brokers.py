"""The records of brokers, and the facts about a bridge that is a candidate for a lease of theirs."""

import zlib
from dataclasses import dataclass
from typing import NamedTuple

from bus.errors import TopologyError
from bus.key_types import Names
from bus.transports.options import Tls
from topologies.model import BrokerSpec, Topology
from topologies.resolved.files import KeyFiles, Stamp, certificates, stamped
from topologies.resolved.ground import Ground
from topologies.wiring.reach import lease_places, peer_urls


@dataclass(frozen=True, slots=True)
class ResolvedBroker:
    """The needs of a broker.

    `system` is the name of the topology. `peers` are the addresses of the other brokers. `certificates` has
    the stamps of each address that has TLS.
    """

    name: str
    system: str
    spec: BrokerSpec
    peers: tuple[str, ...]
    keys: KeyFiles
    certificates: tuple[tuple[str, tuple[Stamp, ...]], ...]

    @property
    def urls(self) -> list[str]:
        """The addresses at which it listens."""
        return [listen.url for listen in self.spec.listen]

    @property
    def tls(self) -> dict[str, Tls]:
        """The TLS of each address that has some."""
        found = {listen.url: listen.tls_of(self.spec.on) for listen in self.spec.listen}
        return {url: tls for url, tls in found.items() if tls}


def resolved_broker(name: str, topology: Topology) -> ResolvedBroker:
    """Return the record of a broker."""
    spec = topology.brokers[name]
    stamps = tuple((one.url, certificates(one.tls_of(spec.on))) for one in spec.listen if one.tls)
    keys, peers = stamped(topology.keys), tuple(peer_urls(topology, name))
    return ResolvedBroker(name, topology.name, spec, peers, keys, stamps)


def lease_bounds(topology: Topology) -> tuple[int | None, int]:
    """Return the shortest lease that its brokers name, None if none does, and the longest, in ms."""
    brokers = topology.brokers.values()
    shortest = min((one.lease_ms for one in brokers if one.lease_ms is not None), default=None)
    return shortest, min((one.most_ms for one in brokers), default=0)


class CandidateFacts(NamedTuple):
    """The facts that make a gateway's copy of a bridge a candidate.

    `pattern` and `lease` name what it is a candidate for: the lease has the name of the group, or of the
    bridge. `on` is its place among the `of` candidates, `gateway` its own name, and `origin` that of all of
    them in envelopes. `brokers` are the URLs that it dials, `tls` the settings of those that have some.
    `parallel`: all candidates forward at once, and no broker chooses.
    """

    pattern: Names
    lease: str
    on: int
    of: int
    brokers: tuple[str, ...]
    tls: tuple[tuple[str, Tls], ...]
    gateway: str
    lease_ms: int | None
    lease_max_ms: int
    origin: int
    keys: KeyFiles
    certificates: tuple[tuple[Stamp, ...], ...]
    parallel: bool = False

    def is_same(self, other: "CandidateFacts | None") -> bool:
        """Return whether both are one candidate, with other brokers, times, keys, TLS or another place."""
        return other is not None and self.identity == other.identity

    @property
    def identity(self) -> tuple[object, ...]:
        """The facts that make another candidate if one of them differs: the place only where all forward."""
        place = (self.on, self.of) if self.parallel else None
        return self.pattern, self.lease, place, self.gateway, self.origin, self.parallel


class Candidates:
    """The brokers as candidates dial them, found once; `facts` are about the candidate for one bridge."""

    def __init__(self, ground: Ground) -> None:
        topology = ground.topology
        places = lease_places(topology)
        self._ground = ground
        self._brokers = tuple(url for url, _ in places)
        own = [(url, address.tls_of(ground.gateway)) for url, address in places]
        self._tls = tuple((url, one) for url, one in own if one is not None)
        self._keys = stamped(topology.keys)
        self._bounds = lease_bounds(topology)
        self._certificates = tuple(certificates(one) for _, one in self._tls)

    def facts(self, bridge: str) -> CandidateFacts | None:
        """Return the facts about this gateway's candidate for a bridge; None if nothing stands in for it.

        Raises `TopologyError` if there is no broker that could choose.
        """
        wiring, gateway = self._ground.wiring, self._ground.gateway
        mates, spec = wiring.candidates[bridge], wiring.topology.bridges[bridge]
        lease = spec.group or bridge
        if len(mates) == 1:
            return None
        if not self._brokers and not spec.is_parallel:
            text = f"bridge {bridge} has {len(mates)} candidates, and no broker to choose one of them"
            raise TopologyError(f"{text}: add a broker (brokers:)")
        origin = zlib.crc32(f"{wiring.topology.name}/bridge {lease}".encode())  # all candidates stamp alike
        return CandidateFacts(
            spec.pattern,
            lease,
            on=[mate.gateway for mate in mates].index(gateway),
            of=len(mates),
            brokers=self._brokers,
            tls=self._tls,
            gateway=gateway,
            lease_ms=self._bounds[0],
            lease_max_ms=self._bounds[1],
            origin=origin,
            keys=self._keys,
            certificates=self._certificates,
            parallel=spec.is_parallel,
        )
