"""The broker that a gateway runs, and the candidates that its bridges send to all brokers."""

import secrets
import zlib
from asyncio import AbstractEventLoop
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from appliance.parts.announcing import Announcer, said_changes
from appliance.parts.bus import certificates, stamped
from appliance.parts.changes import Change, differing, settings_of
from appliance.parts.site import BasePart, Revision, Site
from bus.errors import LinkError
from bus.keys import Keyring, ring_of
from bus.leases.candidate import Candidate
from bus.leases.wire import ANOTHER
from bus.report import Reporter
from bus.schema import Names
from bus.transports.options import Tls
from bus.transports.secure import Security
from bus.urls import split_url
from bus.wire.pattern import Pattern
from devices.dbp.beacon.sending import announcement
from topologies.model import BrokerSpec, candidates_of
from topologies.wiring.reach import lease_places, peer_urls

if TYPE_CHECKING:
    from bus.leases.service import LeasingBroker
    from bus.tmq.wire import Address


class BrokerPart(BasePart):
    """A broker of a topology. Its peers are the other brokers of the file."""

    kind = "broker"

    def __init__(self, name: str, site: Site) -> None:
        self.service = _service(name, site)
        self._keys, self._secured = stamped(site.topology.keys), _secured(site.topology.brokers[name])
        super().__init__(name, site, self.service.hub)
        self._announcer = Announcer()

    @property
    def services(self) -> list[Reporter]:
        return [self.service]

    def revise(self, site: Site) -> Revision:
        """Return the change to the broker as `site` describes it. One that could not open is made anew.

        Raises `LinkError` for keys that are of no use.
        """
        ring, keys = ring_of(site.topology.keys), stamped(site.topology.keys)
        old, new = self._spec, site.topology.brokers[self.name]
        names = differing(settings_of(old), settings_of(new))
        names += ["peers"] if self._peers(site) != self._peers(self.site) else []
        names += ["keys"] if keys != self._keys else []
        left = [url for url in _urls(old) if url not in _urls(new) and self.service.broker.listens(url)]
        come = [url for url in _urls(new) if not self.service.broker.listens(url)]
        was, now = self._secured, _secured(new)
        renewed = [url for url in _urls(new) if url not in come and was.get(url) != now.get(url)]
        lines = [Change("removed", self.title, f"listen {url}") for url in left]
        lines += [Change("added", self.title, f"listen {url}") for url in come]
        lines += [Change("changed", self.title, f"listen {url}", "tls") for url in renewed]
        lines += said_changes(self.title, old.listen, new.listen)
        words = ", ".join(name for name in names if name not in ("on", "listen"))
        lines += [Change("changed", self.title, detail=words)] if words else []
        if not self.service.is_open:
            service = _service(self.name, site)
            return Revision(lines, lambda: self._replace(site, service), self.start)
        settle = partial(self._settle, site, left + renewed, ring, keys)
        return Revision(lines, settle, lambda loop: self._go_on(come + renewed, loop))

    def _replace(self, site: Site, service: "LeasingBroker") -> None:
        self.close()
        self.site, self.service, self.hub = site, service, service.hub
        self._keys, self._secured = stamped(site.topology.keys), _secured(self._spec)

    def _settle(self, site: Site, left: list[str], ring: Keyring | None, keys: tuple[object, ...]) -> None:
        self.site, self._keys, self._secured = site, keys, _secured(site.topology.brokers[self.name])
        for url in left:
            self.service.broker.leave(url)
        self.service.revise(self._peers(site), self._spec, ring, _tls(self._spec))

    def _go_on(self, come: list[str], loop: AbstractEventLoop) -> list[Change]:
        failed = [change for url in come for change in self._attempt(url)]
        self._announce(loop)
        return failed

    def _announce(self, loop: AbstractEventLoop) -> None:
        name = f"{self.site.topology.name}/{self.name}"
        said = [one.url for one in self._spec.listen if one.beacon and self.service.broker.listens(one.url)]
        self._announcer.say(loop, (announcement("broker", url, name) for url in said))

    def _attempt(self, url: str) -> list[Change]:
        try:
            self.service.broker.listen(url, _tls(self._spec).get(url))
        except LinkError as error:
            return [Change("failed", self.title, f"listen {url}", str(error))]
        return []

    def _peers(self, site: Site) -> list[str]:
        return peer_urls(site.topology, self.name)

    @property
    def _spec(self) -> BrokerSpec:
        return self.site.topology.brokers[self.name]

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        try:
            self.service.open(loop)
        except LinkError as error:
            return [Change("failed", self.title, detail=str(error))]
        self._announce(loop)
        return []

    def close(self) -> None:
        self._announcer.close()
        self.service.close()


def _service(name: str, site: Site) -> "LeasingBroker":
    from bus.leases.service import LeasingBroker  # late: few gateways run a broker

    spec = site.topology.brokers[name]
    return LeasingBroker(
        _urls(spec),
        peer_urls(site.topology, name),
        spec,
        ring_of(site.topology.keys),
        _tls(spec),
        name=f"broker {name}",
    )


def _urls(spec: BrokerSpec) -> list[str]:
    return [listen.url for listen in spec.listen]


def _tls(spec: BrokerSpec) -> dict[str, Tls]:
    return {listen.url: listen.tls for listen in spec.listen if listen.tls}


def _secured(spec: BrokerSpec) -> dict[str, tuple[object, ...]]:
    """Return the TLS of each address that has some, and what tells that a file of it has been renewed."""
    return {url: (tls, certificates(tls)) for url, tls in _tls(spec).items()}


class Standing(NamedTuple):
    """The facts that make a gateway's copy of a bridge a candidate; equal facts are the same candidate."""

    pattern: Names
    lease: str  # its name beside the pattern: that of the group, or of the bridge
    on: int  # its place in the list
    of: int  # candidates in the list
    brokers: tuple[str, ...]
    tls: tuple[tuple[str, Tls], ...]  # of those that have one
    gateway: str
    lease_ms: int
    origin: int
    keys: tuple[object, ...]  # files
    certificates: tuple[object, ...]  # what tells that one has been renewed


def standing_of(bridge: str, site: Site) -> Standing | None:
    """Return what this gateway stands for with a bridge that has several candidates, None for any other."""
    topology, spec = site.topology, site.topology.bridges[bridge]
    mates, lease = candidates_of(topology, bridge), spec.group or bridge
    if len(mates) == 1:
        return None
    places = lease_places(topology)
    tls = tuple((url, one) for url, one in places if one is not None)
    return Standing(
        spec.pattern,
        lease,
        on=[mate.gateway for mate in mates].index(site.gateway),
        of=len(mates),
        brokers=tuple(url for url, _ in places),
        tls=tls,
        gateway=site.gateway,
        lease_ms=min(broker.lease_ms for broker in topology.brokers.values()),
        origin=zlib.crc32(f"{topology.name}/bridge {lease}".encode()),  # all candidates stamp alike
        keys=stamped(topology.keys),
        certificates=tuple(certificates(one) for _, one in tls),
    )


def is_same(one: Standing | None, other: Standing | None) -> bool:
    """Return whether a candidate stays the one that it is: it may have other brokers, times, keys and TLS."""
    if one is None or other is None:
        return one is other
    same = other._replace(brokers=one.brokers, lease_ms=one.lease_ms, keys=one.keys)
    return one == same._replace(tls=one.tls, certificates=one.certificates)


def endpoints(standing: Standing) -> "list[Address]":
    """Return the addresses of the brokers. Names are looked up when a broker is dialled, each time."""
    return [(url.host, url.port) for url in map(split_url, standing.brokers)]


class Proofs(NamedTuple):
    """What a candidate shows to brokers: the keys that sign its claims, and the TLS of those with some."""

    keys: Keyring | None = None
    security: "Mapping[Address, Security]" = MappingProxyType({})


def proofs_of(standing: Standing | None, site: Site) -> Proofs:
    """Return the proofs of a candidate. Raises `LinkError` for keys or certificates that are of no use."""
    if standing is None:
        return Proofs()
    tls, places = dict(standing.tls), zip(endpoints(standing), standing.brokers, strict=True)
    security = {at: Security(url, tls[url], listens=False) for at, url in places if url in tls}
    for each in security.values():
        each.open()
    return Proofs(ring_of(site.topology.keys), security)


def candidate_of(standing: Standing) -> Candidate:
    """Return a new candidate."""
    return Candidate(
        Pattern(*standing.pattern),
        standing.lease,
        id=1 + secrets.randbelow(ANOTHER - 1),
        order=standing.on,
        brokers=len(standing.brokers),
        name=standing.gateway,
        lease_ms=standing.lease_ms,
    )
