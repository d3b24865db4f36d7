"""A bus of a gateway: a hub and its addresses."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from appliance.parts.announcing import Announcer, said_changes
from appliance.parts.changes import Change, Draft, Plan, PlannedLink
from appliance.parts.greeting import Greeter
from appliance.parts.site import BasePart, Entry, Revision, Site
from appliance.status.rows import Far, LinkRow, apart
from bridges.announcing import Trunks
from bridges.bridge import Bridge
from bridges.durable.settings import JOURNAL
from bridges.guard import GuardedHub
from bridges.policy import Policy
from bus.announcements import Clocks, off_trunk
from bus.hub import Hub, Link, Pipe
from bus.keys import ring_of
from bus.report import Reporter
from bus.schema import settings_of
from bus.transports.links import BusLink, bus_link
from bus.turns import FULL, Turns
from bus.urls import BEACON, split_url
from bus.watch.watched import WatchedHub
from devices.dbp.beacon.sending import Announcement, announcement
from topologies.model import BusSpec
from topologies.resolved.buses import BusAddress, BusEnd, ResolvedBus
from topologies.resolved.files import paths_of
from topologies.wiring.durable import Mode

if TYPE_CHECKING:
    from bridges.durable.door import Door
    from bridges.durable.house import House
    from bridges.durable.shown import ShownJournal
    from bridges.durable.wire import EndName
    from bus.tmq.wire import Address

LIMITS = frozenset({"queue_bytes", "message_bytes", "origins", "keys", "age_s"})


class BusPart(BasePart):
    """A bus: a plain hub; or, where a trunk reaches it, a bridge with a plain side and a trunk side."""

    kind = "bus"
    _loop: AbstractEventLoop

    def __init__(self, resolved: ResolvedBus, site: Site) -> None:
        super().__init__(resolved.name, site, WatchedHub(resolved.name))
        self.resolved = resolved
        if resolved.trunked:
            import_module("bridges.durable.door")  # now, and not while its addresses open one after the other
        self._house: House | None
        self._before: House | None = None
        self._journal: ShownJournal | None
        self._house, self._journal = self._make_house(resolved)
        self._relayed, self._turns, self._trunks = Clocks(), Turns(self._pass_on), Trunks()
        self._doors: dict[str, Door] = {}
        self.hub = self._make_hub(resolved)
        self._ends = Draft[BusLink]([], self._plans(resolved)).ends
        self._failed: list[LinkRow] = []
        self._note_rows()
        self._announcer = Announcer()
        self._greeter = Greeter(self.title)

    @property
    def spec(self) -> BusSpec:
        """The bus, as the topology describes it."""
        return self.resolved.spec

    def _make_hub(self, resolved: ResolvedBus) -> Hub:
        if not resolved.trunked:
            return WatchedHub(self.name)
        origin = self.origin(resolved.origin)
        bridge = Bridge(self.name, origin, clock=self.site.clock, announced=self._announced)
        bridge.side("plain", Policy(opaque=True, late=True))
        bridge.side("trunk", Policy(trunk=True, opaque=True))
        return bridge

    def _make_house(self, resolved: ResolvedBus) -> "tuple[House, ShownJournal] | tuple[None, None]":
        journal = resolved.journal
        if journal is None:
            return None, None
        from bridges.durable.house import House  # late: few buses keep what others miss
        from bridges.durable.shown import ShownJournal

        house = House(self._end_name(resolved), journal.durable, journal.gateways)
        return house, ShownJournal(house)

    def _end_name(self, resolved: ResolvedBus) -> "EndName":
        from bridges.durable.wire import EndName  # late: a bus without trunks needs none

        return EndName(resolved.system, self.site.gateway, resolved.name)

    def _plans(self, resolved: ResolvedBus) -> list[Plan[BusLink]]:
        """Return the links of the bus: for its addresses, and for other processes of the gateway."""
        plans = [bus_plan(end.place, end.mode, end.at) for end in resolved.links]
        for trunk in (False, True) if resolved.trunked else (False,):
            url = self.site.local_socket(self.name, trunk)
            if url is not None:
                plans.append(bus_plan(f"listen {url}", "listen", BusAddress(trunk, url, *resolved.limits)))
        return plans

    @property
    def links(self) -> list[Link]:
        return [end.link for end in self._ends]

    @property
    def entries(self) -> list[Entry]:
        """The links by which messages come in and go out."""
        return [self._entry(end) for end in self._ends]

    def _entry(self, end: PlannedLink[BusLink]) -> Entry:
        place, settings = end.plan.place, end.plan.settings
        hub, peers = self.hub_for(settings["trunk"]), settings["peers"] or ()
        is_here = settings["address"] in self._sockets
        return Entry(place, hub, end.link, peers, is_here, self._dialled.get(place, ""))

    @property
    def plain(self) -> Hub:
        """The hub of peers without envelopes."""
        return self.hub.sides[0] if isinstance(self.hub, Bridge) else self.hub

    def hub_for(self, trunk: bool) -> Hub:
        """Return where a pipe joins: on the trunk side if it is a `trunk` and there is one."""
        return self.hub.sides[1] if trunk and isinstance(self.hub, Bridge) else self.plain

    def _hub_of(self, end: PlannedLink[BusLink], loop: AbstractEventLoop) -> Hub:
        """Return where the pipes of a link join: on a trunk behind a door, and behind a guard, if its address
        has a list of peers."""
        settings = end.plan.settings
        hub, peers = self.hub_for(settings["trunk"]), settings["peers"]
        if settings["trunk"] and isinstance(self.hub, Bridge):
            from bridges.durable.door import Door  # late, as above
            from bridges.durable.sifting import Sieve

            name, sieve = self._end_name(self.resolved), Sieve(settings["kept"])
            kept = settings["keeps_for"], sieve
            hub = Door(hub, name, loop, self._house, *kept, serves_plain=settings["plain"])
            self._doors[end.plan.place] = hub
        return GuardedHub(hub, peers) if peers else hub

    def _announced(self, message: bytes, pipe: Pipe | None) -> str:
        """Take an announcement that came by a trunk, and pass it on once. Return why it is rejected."""
        frame, source = off_trunk(message), self._source(pipe)
        self._trunks.heard(source)
        found = self.site.hear(frame) if frame else ""
        if isinstance(found, str):
            return found
        if self._relayed.take(found.gateway, found.time_ns, self._loop.time()):
            return "" if self._turns.wait(found.gateway, frame, source, self._loop) else FULL
        return ""

    def _pass_on(self, frame: bytes, source: Pipe | None) -> None:
        """Send an announcement to the peers of all trunks but the one that it came from."""
        for door in self._doors.values():
            self._trunks.say(door.pipes, frame, source)

    def _source(self, pipe: Pipe | None) -> Pipe | None:
        """Return the pipe by which a peer of a trunk is connected, also one for which a journal is kept."""
        found = (door.connected(pipe) for door in self._doors.values() if pipe is not None)
        return next((one for one in found if one is not None), None)

    def announce(self, frame: bytes, told: "set[Address]") -> None:
        self._pass_on(frame, None)

    @property
    def rows(self) -> list[LinkRow]:
        """The rows of all links, with edges for those by which buses of the file join each other.

        The journal's come first: of two faults, the part tells that by which messages are lost.
        """
        return self._rows if self._journal is None else apart([*self.watched, *self._rows])

    def _note_rows(self) -> None:
        """Note the rows of links, which change as the part opens and at reloads only."""
        self._rows = apart([*map(self._row, self._ends), *self._failed])

    @property
    def watched(self) -> list[LinkRow]:
        """The rows of the journal, one for each link that it is kept for."""
        journal = self._journal
        return [] if journal is None else apart(self._kept(journal, link) for link in journal.links)

    def _kept(self, journal: "ShownJournal", link: str) -> LinkRow:
        name = f"{self.hub_for(True).row(link)}{JOURNAL}"
        kept = tuple(journal.rows(link))
        row = next((self._row(end) for end in self._ends if end.link.name == link), None)
        label, edges = (link, ()) if row is None else (row.label, row.edges)
        return LinkRow(self.hub, name, journal, edges, "", kept, f"{label}{JOURNAL}", "inside")

    def _row(self, end: PlannedLink[BusLink], failure: str = "") -> LinkRow:
        edges = tuple(one.edge for one in self.resolved.joined if one.place == end.plan.place)
        name = self.hub_for(end.plan.settings["trunk"]).row(end.link.name)
        return LinkRow(self.hub, name, end.link, edges, failure, (), self._label(end), self._far(end))

    def _label(self, end: PlannedLink[BusLink]) -> str:
        """Return the name of a link as in the file: its address, or the bus that it dials."""
        bus = self._dialled.get(end.plan.place, "")
        trunk = " (trunk)" if end.plan.settings["trunk"] else ""
        return f"{f'dial bus {bus}' if bus else end.plan.place}{trunk}"

    def _far(self, end: PlannedLink[BusLink]) -> Far:
        if end.plan.settings["address"] in self._sockets:
            return "inside"
        in_plant = end.plan.settings["trunk"] or self._dialled.get(end.plan.place)
        return "plant" if in_plant else "outside"

    @property
    def _dialled(self) -> dict[str, str]:
        """The buses of the file that links dial, by the place of the link."""
        return {one.place: one.bus for one in self.resolved.links}

    @property
    def _sockets(self) -> list[str | None]:
        """The local sockets at which other processes of the gateway meet the bus."""
        return [self.site.local_socket(self.name, trunk) for trunk in (False, True)]

    @property
    def services(self) -> list[Reporter]:
        return [self._greeter] if self._greeter.urls else []

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        self._loop = loop
        return self._open(self._ends, loop)

    def _open(self, ends: list[PlannedLink[BusLink]], loop: AbstractEventLoop) -> list[Change]:
        self.forgive()
        if self._house is not None:
            self._house.open(loop, self._before)
            self._before = None
        failed, self._failed = list[Change](), []
        for end in list(ends):
            trouble = self.attempt(end.plan.place, end.link, self._hub_of(end, loop), loop)
            if trouble:
                self._ends = [other for other in self._ends if other is not end]
                self._failed.append(self._row(end, trouble[0].detail))
            failed += trouble
        self._note_rows()
        self._announcer.say(loop, self._announcements())
        self._greet()
        return failed

    def _announcements(self) -> Iterator[Announcement | None]:
        name = f"{self.resolved.system}/{self.name}"
        for end, link in self._there():
            if end.beacon:
                yield announcement("trunk" if end.at.trunk else "bus", link.url, name)

    def _there(self) -> list[tuple[BusEnd, BusLink]]:
        """Return the addresses of the topology whose links are there."""
        links = {end.plan.place: end.link for end in self._ends}
        return [(end, links[end.place]) for end in self.resolved.links if end.place in links]

    def _greet(self) -> None:
        """Let newcomers be greeted with last values at the addresses that ask for that."""
        greeting = {link.name: link.url for end, link in self._there() if end.last_values}
        self._greeter.serve(self.plain, greeting)

    def revise(self, resolved: ResolvedBus) -> Revision:
        """Return the change to the bus as `resolved` has it. Raises `LinkError` if it can never work."""
        draft = Draft(self._ends, self._plans(resolved))
        return Revision(
            [*draft.changes(self.title), *said_changes(self.title, self.spec.listen, resolved.spec.listen)],
            lambda: self._settle(resolved, draft),
            lambda loop: self._open(draft.fresh(), loop),
            draft.fates,
        )

    def _settle(self, resolved: ResolvedBus, draft: Draft[BusLink]) -> None:
        draft.close()
        places = {end.plan.place for end in draft.ends if end.plan.settings["trunk"]}
        self._doors = {place: door for place, door in self._doors.items() if place in places}
        if resolved.journal != self.resolved.journal:  # then all trunks are opened anew
            self._close_house()
            self._before = self._house
            self._house, self._journal = self._make_house(resolved)
        self.resolved, self._ends = resolved, draft.ends
        origin = self.origin(resolved.origin)
        if resolved.trunked != isinstance(self.hub, Bridge):
            old, self.hub = self.hub, self._make_hub(resolved)
            self.hub.inherit(old, _inside if isinstance(self.hub, Bridge) else _outside)
            for end in draft.staying():
                end.link.rehome(self._hub_of(end, self._loop))
        elif isinstance(self.hub, Bridge) and self.hub.origin != origin:
            self.hub.revise(origin, ())
        self._note_rows()

    def close(self) -> None:
        self._turns.close()
        self._announcer.close()
        self._greeter.close()
        super().close()
        self._close_house()

    def _close_house(self) -> None:
        if self._house is not None:
            self._house.close()


def _inside(link: str) -> str:
    """Return the name that a link of a plain bus has in the accounts of a bus with trunks."""
    return link if link.startswith(("plain/", "trunk/")) else f"plain/{link}"


def _outside(link: str) -> str:
    return link.removeprefix("plain/")


def bus_plan(place: str, mode: Mode, at: BusAddress, choice: Hashable = None) -> Plan[BusLink]:
    """Plan a link that listens for a bus or dials one."""

    def make() -> BusLink:
        return bus_link(
            at.address,
            mode,
            at.queue_bytes,
            at.message_bytes,
            at.tls,
            at.trunk,
            _maker(at.address),
            at.origins,
            keys=ring_of(paths_of(at.keys)),
            wary=at.trunk,
            age_s=at.age_s,
        )

    return Plan(place, settings_of(at), make, choice, soft=LIMITS)


def _maker(url: str) -> Callable[..., BusLink] | None:
    """Return the function that makes a link that finds its bus by beacon; None for others."""
    if split_url(url).scheme != BEACON:
        return None
    from devices.dbp.beacon.link import beacon_link  # late: few buses look for others

    return beacon_link
