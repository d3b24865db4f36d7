"""The composition root: one gateway's part of a topology as running parts, and their change at run time."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from appliance.log.unpublished import UnpublishedLines
from appliance.monitor import SCAN_S, Monitor
from appliance.parts.bridge import BridgePart
from appliance.parts.broker import BrokerPart
from appliance.parts.bus import BusPart
from appliance.parts.changes import Change, of_memory, of_names, of_page, of_told
from appliance.parts.device import DevicePart
from appliance.parts.kinds import part_class
from appliance.parts.outlets import Outlets
from appliance.parts.site import Revision, Site
from appliance.status.neighbours import Neighbours
from appliance.status.rows import LinkRow
from appliance.status.transit import Transit
from appliance.status.view import Around, Besides, Sampled, View
from appliance.web.service import StatusPage
from bus.errors import TopologyError
from bus.hub import Hub, Link
from bus.transports import budget
from topologies.model import S, Topology, running
from topologies.names import known, listed
from topologies.picture.drawing import copies, draw
from topologies.resolved.sides import seats_at
from topologies.wiring.events import EVENTS, LOGS, publishing_buses
from topologies.wiring.rings import ringed
from topologies.wiring.segments import wired

log = logging.getLogger("buscoupler")

Part = BusPart | BridgePart | BrokerPart | DevicePart
P = TypeVar("P", BusPart, BridgePart, BrokerPart, DevicePart)


class Built(NamedTuple):
    """The parts of a gateway in the order of opening, and how those of them that run already change."""

    parts: dict[str, Part]
    revisions: dict[str, Revision]

    def changes(self, old: Mapping[str, Part], foreseen: bool = False) -> list[Change]:
        """Return what differs from the running parts `old`; if `foreseen`, with what becomes of each link.

        That is for parts that are not open, and never will be.
        """
        removed = [Change("removed", title) for title in old if title not in self.parts]
        added = [Change("added", title) for title in self.parts if title not in old]
        stay = [title for title in self.parts if title in old]
        anew = [Change("changed", title, detail="kind") for title in stay if title not in self.revisions]
        revisions = self.revisions.values()
        revised = [one for each in revisions for one in (each.foreseen() if foreseen else each.changes)]
        return [*removed, *added, *anew, *revised]

    def close(self, old: dict[str, Part]) -> None:
        """Close what goes of the running parts `old`, bridges before buses, so that nothing new enters."""
        for title in reversed(old):
            if title in self.revisions:
                self.revisions[title].close()
            else:
                old[title].close()

    def open(self, loop: AbstractEventLoop) -> list[Change]:
        """Open what comes, buses before bridges. Return what failed."""
        opens = [
            self.revisions[title].open if title in self.revisions else part.start
            for title, part in self.parts.items()
        ]
        return [change for opening in opens for change in opening(loop)]


class Builder:
    """Makes the parts that run at `site`; `kept` are running parts, of which those that stay are revised."""

    def __init__(self, site: Site, only: frozenset[str], kept: Mapping[str, Part]) -> None:
        self._site, self._only, self._kept = site, only, kept
        self._revisions: dict[str, Revision] = {}

    def build(self) -> Built:
        """Return the parts, with nothing changed yet. Devices come first that look into what follows.

        Raises `TopologyError` for a part of `only` that is not there, `LinkError` for what can never work.
        """
        topology = self._site.topology
        brokers = [self._part(BrokerPart, name) for name in self._here(topology.brokers)]
        buses = {name: self._part(BusPart, name) for name in self._here(topology.buses)}
        seats = seats_at(wired(topology), self._site.gateway)
        bridges = {
            name: self._part(BridgePart, name, buses, seats[name]) for name in self._here(topology.bridges)
        }
        devices = self._devices({**buses, **bridges})
        inside = [device for device in devices if device.spec.inside]
        peers = [device for device in devices if not device.spec.inside]
        parts: list[Part] = [*inside, *brokers, *buses.values(), *bridges.values(), *peers]
        self._check_only({part.name for part in parts})
        return Built({part.title: part for part in parts}, self._revisions)

    def _devices(self, joinable: Mapping[str, BusPart | BridgePart]) -> list[DevicePart]:
        """Return the devices. Those that look into parts run wherever one of these does; others as named."""
        made = list[DevicePart]()
        for name, spec in running(self._site.topology.devices, self._site.gateway).items():
            joined = [joinable[part] for part in spec.joins if part in joinable]
            if joined if spec.inside else not self._only or name in self._only:
                made.append(self._part(part_class(spec), name, joined))
        return made

    def _check_only(self, names: set[str]) -> None:
        missing = sorted(self._only - names)
        inside = self._site.topology.devices.get(next(iter(missing), ""))
        if inside is not None and inside.on == self._site.gateway:
            also = " ".join(f"--only {part}" for part in inside.joins)
            text = f"{missing[0]} is a {inside.key}, and looks into parts of its own process"
            raise TopologyError(f"{text}: it runs in each process that runs one of them; add {also}")
        if missing:
            raise TopologyError(f"gateway {self._site.gateway} runs no {', '.join(missing)}")

    def _here(self, specs: Mapping[str, S]) -> list[str]:
        """Return the names in `specs` that run at the site."""
        return [name for name in running(specs, self._site.gateway) if not self._only or name in self._only]

    def _part(self, kind: type[P], name: str, *joined: Any) -> P:
        """Return the running part of that name with a revision, else a new part."""
        title = f"{kind.kind} {name}"
        old = self._kept.get(title)
        if not isinstance(old, kind) or self._is_other_kind(old):
            return kind(name, self._site, *joined)
        self._revisions[title] = old.revise(self._site, *joined)
        return old

    def _is_other_kind(self, old: Part) -> bool:
        """Return whether a device is of another kind now."""
        return isinstance(old, DevicePart) and old.spec.key != self._site.topology.devices[old.name].key


class Publishing(NamedTuple):
    """The buses on which a gateway publishes what it says itself."""

    events: list[str]
    logs: list[str]

    @classmethod
    def of(cls, topology: Topology, gateway: str) -> "Publishing":
        return cls(*(publishing_buses(wired(topology), gateway, told) for told in (EVENTS, LOGS)))

    def changes(self, new: "Publishing") -> list[Change]:
        return [*of_told(EVENTS.key, self.events, new.events), *of_told(LOGS.key, self.logs, new.logs)]


class Appliance:
    """The part of `topology` that `gateway` runs; only the parts named in `only`, if it is not empty.

    With `only`, buses also listen on local sockets in `sockets`, where bridges in other processes
    of the gateway meet them. Raises `TopologyError` for a gateway or part that is not there.
    """

    def __init__(
        self, topology: Topology, gateway: str, only: Collection[str] = (), sockets: Path | None = None
    ) -> None:
        self.gateway, self.topology = gateway, topology
        self.names, self._listed = known(topology), listed(topology.names)
        self._only, self._sockets = frozenset(only), sockets if only else None
        self.monitor = Monitor(gateway, self)
        site = self._site(topology)
        self.parts = Builder(site, self._only, {}).build().parts
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._outlets, self._unpublished = Outlets(time.monotonic), UnpublishedLines(gateway)
        self._publish(site)
        self._started_ns = time.time_ns()
        self.page = StatusPage(topology.gateways[gateway].address)
        self.neighbours, self._transit = Neighbours(gateway), Transit()
        self._drawing: dict[str, Any] | None = None
        self._copies = copies(topology)

    def _site(self, topology: Topology) -> Site:
        if self.gateway not in topology.gateways:
            known = ", ".join(topology.gateways)
            raise TopologyError(f'no gateway "{self.gateway}" in {topology.name}; it has {known}')
        return Site(topology, self.gateway, self._sockets, self.monitor.record, ringed(wired(topology)))

    def _publish(self, site: Site) -> None:
        """Publish from now on what this process says itself where the topology wants it."""
        self._publishing = Publishing.of(site.topology, self.gateway)
        buses = [*self._publishing.events, *self._publishing.logs]
        self._outlets.follow(site, self.parts, buses)

    def _listen(self) -> None:
        """Keep what is logged from now on, if it is to be published."""
        self._unpublished.listen(bool(self._publishing.logs), without_events=bool(self._publishing.events))

    def open(self, loop: AbstractEventLoop) -> None:
        """Open everything, buses before bridges. Raises `LinkError` with nothing left open."""
        self._loop = loop
        self._settle_budget()
        self._listen()
        try:
            for part in self.parts.values():
                part.open(loop)
        except BaseException:
            self.close()
            raise
        self._show()
        self._scan()

    def _settle_budget(self) -> None:
        """Bound what this process holds for its peers, as the topology says."""
        limit_bytes = self.topology.gateways[self.gateway].memory_bytes
        budget.PROCESS.revise(budget.default_bytes() if limit_bytes is None else limit_bytes)

    def _show(self) -> None:
        """Serve the status page as the topology says."""
        assert self._loop is not None
        self.page.follow(self.topology.gateways[self.gateway].status, self.view(), self._loop)

    def _scan(self) -> None:
        assert self._loop is not None
        self.monitor.scan(self._loop.time())
        self._transit.sample(self.hubs(), self._loop)
        self._timer = self._loop.call_later(SCAN_S, self._scan)

    def close(self) -> None:
        """Close everything, bridges before buses, so that nothing new enters. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._unpublished.listen(False)
        self._transit.close()
        self.page.close()
        self._outlets.close()
        for part in reversed(self.parts.values()):
            part.close()

    def hubs(self) -> Iterable[Hub]:
        return [*(hub for part in self.parts.values() for hub in part.hubs), *self._outlets.hubs]

    def say(self, events: list[bytes]) -> bool:
        """Publish these events, and the lines of the log that wait. Return whether there was anything."""
        assert self._loop is not None
        lines = self._unpublished.drain()
        self._outlets.say(self._publishing.events, events)
        self._outlets.say(self._publishing.logs, lines)
        self._outlets.tick(self._loop)
        return bool(events or lines)

    def links(self) -> list[Link]:
        return [link for part in self.parts.values() for link in part.links]

    def rows(self) -> list[LinkRow]:
        """Return the rows of all links in a status."""
        return [row for part in self.parts.values() for row in part.rows]

    def watched_links(self) -> list[LinkRow]:
        """Return the links to media, and the devices. Those of a bus only log: their peers come and go."""
        return [row for part in self.parts.values() for row in part.watched]

    def _picture(self) -> dict[str, Any]:
        """Return the picture of the topology. It is drawn when somebody asks first."""
        if self._drawing is None:
            self._drawing = draw(self.topology).as_record()
        return self._drawing

    def view(self) -> View:
        """Return what a status shows of this process."""
        return View(
            program="run",
            name=self.topology.name,
            gateway=self.gateway,
            started_ns=self._started_ns,
            parts=lambda: self.parts.values(),
            besides=lambda: Besides(hubs=self._outlets.hubs, services=(self.page,)),
            around=self._around,
            sampled=lambda: Sampled(self.monitor.events, self.monitor.rates.now, self._transit.as_records()),
        )

    def _around(self, claims: Mapping[str, int]) -> Around:
        gateways = {name: gateway.address for name, gateway in self.topology.gateways.items()}
        silent = self.neighbours.silent(self.topology, claims)
        return Around(gateways, silent, self.names, self.page.url, self._picture(), self._copies)

    def foresee(self, topology: Topology) -> tuple[list[Change], list[str]]:
        """Return what a reload with another topology would change, and the parts in which nothing differs.

        For an appliance that is not open; it is of no use after that. Raises as the constructor does.
        """
        assert self._loop is None
        following = self._follow(topology)
        changes = following.changes(self, foreseen=True)
        touched = {change.part for change in changes}
        return changes, [title for title in following.built.revisions if title not in touched]

    def _follow(self, topology: Topology) -> "_Following":
        names, in_list = known(topology), listed(topology.names)
        publishing = Publishing.of(topology, self.gateway)
        site = self._site(topology)
        return _Following(site, names, in_list, publishing, Builder(site, self._only, self.parts).build())

    def change(self, topology: Topology) -> list[Change]:
        """Go over to another topology, link by link, between two batches: what stays keeps its pipes.

        Return what differs, then what failed. Raises as the constructor does, with nothing changed.
        """
        assert self._loop is not None
        following = self._follow(topology)
        differing, built = following.changes(self), following.built
        built.close(self.parts)
        self.parts, self.topology = built.parts, topology
        self.names, self._listed = following.names, following.listed
        self._drawing, self._copies = None, copies(topology)
        self._settle_budget()
        self._show()
        failed = built.open(self._loop)
        self._publish(following.site)
        self._listen()
        broken = {(change.part, change.end) for change in failed}
        whole = [one for one in differing if not broken & {(one.part, ""), (one.part, one.end)}]
        return whole + failed

    def besides(self, following: "_Following") -> list[Change]:
        """Return what differs beside the parts."""
        found = of_names(self._listed, following.listed) + self._publishing.changes(following.publishing)
        here, there = self.topology.gateways[self.gateway], following.site.here
        return found + of_page(here, there) + of_memory(here, there)


class _Following(NamedTuple):
    """What follows an appliance, before anything has changed."""

    site: Site
    names: list[str]
    listed: list[str]
    publishing: Publishing
    built: Built

    def changes(self, now: Appliance, foreseen: bool = False) -> list[Change]:
        return [*self.built.changes(now.parts, foreseen), *now.besides(self)]
