"""A bus of a gateway: a hub and its addresses."""

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress

from appliance.parts.announcing import Announcer, said_changes
from appliance.parts.changes import Change, Draft, End, Plan
from appliance.parts.greeting import Greeter
from appliance.parts.site import BasePart, Entry, Revision, Site
from appliance.status.rows import LinkRow
from bridges.bridge import Bridge, Policy
from bridges.guard import GuardedHub
from bus.hub import Hub, Link
from bus.keys import ring_of
from bus.report import Reporter
from bus.transports.links import BusLink, Mode, bus_link
from bus.transports.options import Tls
from bus.transports.peers import Peer
from bus.urls import BEACON, split_url
from bus.watched import WatchedHub
from devices.dbp.beacon.sending import Announcement, announcement
from topologies.model import Address, BusSpec, Listen
from topologies.picture.drawing import joined_to
from topologies.wiring.keys import keys_of
from topologies.wiring.reach import bus_at, dials_of, has_trunk
from topologies.wiring.rings import age_s

LIMITS = frozenset({"queue_bytes", "message_bytes", "origins", "keys", "age_s"})


class BusPart(BasePart):
    """A bus: a plain hub; or, where a trunk reaches it, a bridge with a plain side and a trunk side."""

    kind = "bus"

    def __init__(self, name: str, site: Site) -> None:
        super().__init__(name, site, WatchedHub(name))
        self.spec = site.topology.buses[name]
        self.hub = self._make_hub(self.spec, site)
        self._ends = Draft[BusLink]([], list(self._plans(site))).ends
        self._failed: list[LinkRow] = []
        self._announcer = Announcer()
        self._joined: list[tuple[str, str, str]] | None = None  # found when somebody asks first
        self._greeter = Greeter(self.title)

    def _make_hub(self, spec: BusSpec, site: Site) -> Hub:
        if not has_trunk(spec):
            return WatchedHub(self.name)
        bridge = Bridge(self.name, self.origin(site))
        bridge.side("plain", Policy(opaque=True))
        bridge.side("trunk", Policy(trunk=True, opaque=True))
        return bridge

    def _plans(self, site: Site) -> Iterator[Plan[BusLink]]:
        spec = site.topology.buses[self.name]
        modes: tuple[tuple[Mode, tuple[Address, ...]], ...]
        modes = ("listen", spec.listen), ("dial", dials_of(site.topology, self.name))
        for mode, addresses in modes:
            for address in addresses:
                patience_s = age_s(self.title, address.trunk, address.age_ms, site.rings)
                yield _address_plan(spec, address, mode, keys_of(site.topology, address), patience_s)
        for trunk in (False, True) if has_trunk(spec) else (False,):
            url = site.local_socket(self.name, trunk)
            if url is not None:
                yield bus_plan(f"listen {url}", url, "listen", trunk, spec.limits(spec))

    @property
    def links(self) -> list[Link]:
        return [end.link for end in self._ends]

    @property
    def entries(self) -> list[Entry]:
        """The links by which messages come in and go out."""
        return [self._entry(end) for end in self._ends]

    def _entry(self, end: End[BusLink]) -> Entry:
        place, settings, site = end.plan.place, end.plan.settings, self.site
        bus = bus_at(site.topology, settings["address"], site.gateway) if place.startswith("dial") else None
        is_local = settings["address"] in [site.local_socket(self.name, trunk) for trunk in (False, True)]
        hub, peers = self.hub_for(settings["trunk"]), settings["peers"] or ()
        return Entry(place, hub, end.link, peers, is_local, bus or "")

    @property
    def plain(self) -> Hub:
        """The hub of peers without envelopes."""
        return self.hub.sides[0] if isinstance(self.hub, Bridge) else self.hub

    def hub_for(self, trunk: bool) -> Hub:
        """Return where a pipe joins: on the trunk side if it is a `trunk` and there is one."""
        return self.hub.sides[1] if trunk and isinstance(self.hub, Bridge) else self.plain

    def _hub_of(self, end: End[BusLink]) -> Hub:
        """Return where the pipes of a link join: behind a guard, if its address has a list of peers."""
        hub, peers = self.hub_for(end.plan.settings["trunk"]), end.plan.settings["peers"]
        return GuardedHub(hub, peers) if peers else hub

    @property
    def rows(self) -> list[LinkRow]:
        """The rows of all links, with edges for those by which buses of the file join each other."""
        return [*map(self._row, self._ends), *self._failed]

    def _row(self, end: End[BusLink], failure: str = "") -> LinkRow:
        if self._joined is None:
            self._joined = joined_to(self.site.topology, self.name)
        edges = tuple(edge for edge, mode, url in self._joined if end.plan.place == f"{mode} {url}")
        name = self.hub_for(end.plan.settings["trunk"]).row(end.link.name)
        return LinkRow(self.hub, name, end.link, edges, failure)

    @property
    def services(self) -> list[Reporter]:
        return [self._greeter] if self._greeter.urls else []

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        return self._open(self._ends, loop)

    def _open(self, ends: list[End[BusLink]], loop: AbstractEventLoop) -> list[Change]:
        failed, self._failed = list[Change](), []
        for end in list(ends):
            trouble = self.attempt(end.plan.place, end.link, self._hub_of(end), loop)
            if trouble:
                self._ends = [other for other in self._ends if other is not end]
                self._failed.append(self._row(end, trouble[0].detail))
            failed += trouble
        self._announcer.say(loop, self._announcements())
        self._greet()
        return failed

    def _announcements(self) -> Iterator[Announcement | None]:
        name = f"{self.site.topology.name}/{self.name}"
        for address, link in self._listening():
            if address.beacon:
                yield announcement("trunk" if address.trunk else "bus", link.url, name)

    def _listening(self) -> Iterator[tuple[Listen, BusLink]]:
        """Yield the addresses of the topology whose links are there."""
        links = {end.plan.place: end.link for end in self._ends}
        for address in self.spec.listen:
            link = links.get(_place("listen", address))
            if link is not None:
                yield address, link

    def _greet(self) -> None:
        """Have newcomers greeted where the topology says so."""
        greeting = {link.name: link.url for address, link in self._listening() if address.last_values}
        self._greeter.serve(self.plain, greeting)

    def revise(self, site: Site) -> Revision:
        """Return the change to the bus as `site` describes it. Raises `LinkError` if it can never work."""
        spec = site.topology.buses[self.name]
        draft = Draft(self._ends, list(self._plans(site)))
        return Revision(
            [*draft.changes(self.title), *said_changes(self.title, self.spec.listen, spec.listen)],
            lambda: self._settle(spec, site, draft),
            lambda loop: self._open(draft.fresh(), loop),
            draft.fates,
        )

    def _settle(self, spec: BusSpec, site: Site, draft: Draft[BusLink]) -> None:
        draft.close()
        self.spec, self.site, self._ends, self._joined = spec, site, draft.ends, None
        if has_trunk(spec) != isinstance(self.hub, Bridge):
            old, self.hub = self.hub, self._make_hub(spec, site)
            self.hub.inherit(old, _inside if isinstance(self.hub, Bridge) else _outside)
            for end in draft.staying():
                end.link.rehome(self._hub_of(end))
        elif isinstance(self.hub, Bridge) and self.hub.origin != self.origin(site):
            self.hub.revise(self.origin(site), ())

    def close(self) -> None:
        self._announcer.close()
        self._greeter.close()
        super().close()


def _inside(link: str) -> str:
    """Return the name that a link of a plain bus has in the accounts of a bus with trunks."""
    return link if link.startswith(("plain/", "trunk/")) else f"plain/{link}"


def _outside(link: str) -> str:
    return link.removeprefix("plain/")


def _address_plan(
    spec: BusSpec, address: Address, mode: Mode, keys: tuple[str, ...], age_s: float
) -> Plan[BusLink]:
    place, limits, tls, trunk = _place(mode, address), spec.limits(address), address.tls, address.trunk
    origins, peers = (address.origins, address.peers) if isinstance(address, Listen) else ((), None)
    return bus_plan(
        place, address.url, mode, trunk, limits, tls, origins=origins, peers=peers, keys=keys, age_s=age_s
    )


def _place(mode: Mode, address: Address) -> str:
    return f"{mode} {address.url}"


def bus_plan(
    place: str,
    url: str,
    mode: Mode,
    trunk: bool,
    limits: tuple[int, int],
    tls: Tls | None = None,
    choice: Hashable = None,
    origins: tuple[str, ...] = (),
    keys: tuple[str, ...] = (),
    peers: tuple[Peer, ...] | None = None,
    age_s: float = 0.0,
) -> Plan[BusLink]:
    """Plan a link that listens for a bus or dials one. `limits` are those of its queue and messages.

    `keys` are files. `age_s` is that of `StreamOptions`.
    """
    queue_bytes, message_bytes = limits
    settings = {
        "trunk": trunk,
        "address": url,
        "queue_bytes": queue_bytes,
        "message_bytes": message_bytes,
        "tls": tls,
        "certificates": certificates(tls),
        "origins": origins,
        "keys": stamped(keys),
        "peers": peers,
        "age_s": age_s,
    }

    def make() -> BusLink:
        limits, ring = (queue_bytes, message_bytes), ring_of(keys)
        make = _maker(url)
        return bus_link(url, mode, *limits, tls, trunk, make, origins, keys=ring, wary=trunk, age_s=age_s)

    return Plan(place, settings, make, choice, soft=LIMITS)


def _maker(url: str) -> Callable[..., BusLink] | None:
    """Return the function that makes a link that finds its bus by beacon; None for others."""
    if split_url(url).scheme != BEACON:
        return None
    from devices.dbp.beacon.link import beacon_link  # late: few buses look for others

    return beacon_link


def certificates(tls: Tls | None) -> tuple[object, ...]:
    """Return what tells that a file of certificates has been renewed."""
    files = () if tls is None else (tls.ca_file, tls.cert_file, tls.key_file)
    return tuple(_stamp(file) for file in files if file)


def stamped(keys: tuple[str, ...]) -> tuple[object, ...]:
    """Return the files of keys, and what tells that one has been renewed."""
    return tuple((file, _stamp(file)) for file in keys)


def _stamp(file: str) -> object:
    with suppress(OSError):
        found = os.stat(file)
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None
