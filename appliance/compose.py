"""The composition root: one gateway's part of a topology as running parts, and their change at run time."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from appliance.brokers import BrokerPart
from appliance.monitor import SCAN_S, Monitor
from appliance.parts import BridgePart, BusPart
from appliance.site import Site
from appliance.status.snapshot import View
from appliance.tap import TapPart
from bus.errors import LinkError, TopologyError
from bus.hub import Hub, Link
from topologies.events import publishing_buses
from topologies.model import S, Topology, running
from topologies.names import known

log = logging.getLogger("buscoupler")

Part = BusPart | BridgePart | BrokerPart | TapPart
P = TypeVar("P", BusPart, BridgePart, BrokerPart, TapPart)


def build(site: Site, only: Collection[str], kept: Mapping[str, Part]) -> dict[str, Part]:
    """Return the parts that run at `site`, in the order of opening; of `kept` those that can stay.

    A tap runs wherever something that it taps does. Raises `TopologyError` for a part of `only` that is not
    there.
    """
    topology = site.topology
    brokers = [_part(kept, BrokerPart, name, site) for name in _here(site, only, topology.brokers)]
    buses = {name: _part(kept, BusPart, name, site) for name in _here(site, only, topology.buses)}
    bridges = {
        name: _part(kept, BridgePart, name, site, buses) for name in _here(site, only, topology.bridges)
    }
    tappable: dict[str, BusPart | BridgePart] = {**buses, **bridges}
    taps = [
        _part(kept, TapPart, name, site, tapped)
        for name in _here(site, (), topology.devices)
        if (tapped := [tappable[tap] for tap in topology.devices[name].tap if tap in tappable])
    ]
    parts: list[Part] = [*taps, *brokers, *buses.values(), *bridges.values()]
    missing = sorted(set(only) - {part.name for part in parts})
    if missing:
        raise TopologyError(f"gateway {site.gateway} runs no {', '.join(missing)}")
    return {f"{part.kind} {part.name}": part for part in parts}


def _here(site: Site, only: Collection[str], specs: Mapping[str, S]) -> list[str]:
    """Return the names in `specs` that run at `site`."""
    return [name for name in running(specs, site.gateway) if not only or name in only]


def _part(kept: Mapping[str, Part], kind: type[P], name: str, site: Site, *joined: Any) -> P:
    """Return the running part of that name if it can stay, else a new one."""
    old = kept.get(f"{kind.kind} {name}")
    if isinstance(old, kind) and old.site.here == site.here and old.stays(site, *joined):
        return old
    return kind(name, site, *joined)


class Appliance:
    """The part of `topology` that `gateway` runs; only the parts named in `only`, if it is not empty.

    With `only`, buses also listen on local sockets in `sockets`, where bridges in other processes
    of the gateway meet them. Raises `TopologyError` for a gateway or part that is not there.
    """

    def __init__(
        self, topology: Topology, gateway: str, only: Collection[str] = (), sockets: Path | None = None
    ) -> None:
        self.gateway, self.topology, self.names = gateway, topology, known(topology)
        self._only, self._sockets = frozenset(only), sockets if only else None
        self.monitor = Monitor(gateway, self)
        self.parts = self._build(topology, {})
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._publishing: tuple[Topology, list[str]] | None = None
        self._started_ns = time.time_ns()

    def _build(self, topology: Topology, kept: Mapping[str, Part]) -> dict[str, Part]:
        if self.gateway not in topology.gateways:
            known = ", ".join(topology.gateways)
            raise TopologyError(f'no gateway "{self.gateway}" in {topology.name}; it has {known}')
        return build(Site(topology, self.gateway, self._sockets, self.monitor.record), self._only, kept)

    def open(self, loop: AbstractEventLoop) -> None:
        """Open everything, buses before bridges. Raises `LinkError` with nothing left open."""
        self._loop = loop
        try:
            for part in self.parts.values():
                part.open(loop)
        except BaseException:
            self.close()
            raise
        self._scan()

    def _scan(self) -> None:
        assert self._loop is not None
        self.monitor.scan(self._loop.time())
        self._timer = self._loop.call_later(SCAN_S, self._scan)

    def close(self) -> None:
        """Close everything, bridges before buses, so that nothing new enters. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        for part in reversed(self.parts.values()):
            part.close()

    def hubs(self) -> Iterable[Hub]:
        return [part.hub for part in self.parts.values()]

    def event_hubs(self) -> Iterable[Hub]:
        """Return the hubs on which events are published: the plain sides of buses that the topology names."""
        if self._publishing is None or self._publishing[0] is not self.topology:
            self._publishing = self.topology, publishing_buses(self.topology, self.gateway)
        _, names = self._publishing
        parts = self.parts.values()
        return [part.plain for part in parts if isinstance(part, BusPart) and part.name in names]

    def links(self) -> list[Link]:
        return [link for part in self.parts.values() for link in part.links]

    def watched_links(self) -> list[Link]:
        """Return the links to media and the recorders. Those of a bus only log: their peers come and go."""
        return [link for part in self.parts.values() for link in part.watched]

    def view(self) -> View:
        """Return what a status shows of this process."""
        return View(
            program="run",
            name=self.topology.name,
            gateway=self.gateway,
            gateways=lambda: {name: gateway.address for name, gateway in self.topology.gateways.items()},
            links=self.links,
            hubs=self.hubs,
            brokers=lambda: [part.service for part in self.parts.values() if isinstance(part, BrokerPart)],
            candidacies=lambda: [
                part.candidacy
                for part in self.parts.values()
                if isinstance(part, BridgePart) and part.candidacy is not None
            ],
            events=lambda: self.monitor.events,
            names=lambda: self.names,
            started_ns=self._started_ns,
        )

    def change(self, topology: Topology) -> list[str]:
        """Go over to another topology: close and open only the parts that differ. Returns their names.

        A bridge is opened again too when a bus that it joins is. Raises as the constructor does, with nothing
        changed.
        """
        old, new, names = self.parts, self._build(topology, self.parts), known(topology)
        changed = sorted(key for key in {*old, *new} if old.get(key) is not new.get(key))
        for key in reversed(old):
            if key in changed:
                old[key].close()
        self.parts, self.topology, self.names = new, topology, names
        for key, part in new.items():
            if key in changed:
                self._open_or_report(part)
            elif isinstance(part, TapPart):
                part.recorder.know(names)
        return changed

    def _open_or_report(self, part: Part) -> None:
        """Open a part at run time. If it cannot open, log that and leave the others as they are."""
        assert self._loop is not None
        try:
            part.open(self._loop)
        except LinkError as error:
            log.error("%s: not running: %s", part.name, error)
            part.close()
