"""The composition root: one gateway's part of a topology as running parts, and their change at run time."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Collection, Iterable
from pathlib import Path

from appliance.brokers import BrokerPart
from appliance.monitor import SCAN_S, Monitor
from appliance.parts import BridgePart, BusPart
from appliance.tap import TapPart
from bus.errors import LinkError, TopologyError
from bus.hub import Hub, Link
from topologies.model import BridgeSpec, BrokerSpec, BusSpec, DeviceSpec, Topology

log = logging.getLogger("buscoupler")

Part = BusPart | BridgePart | BrokerPart | TapPart


class Appliance:
    """What `gateway` runs of `topology`; only the parts named in `only`, if it is not empty.

    With `only`, buses also listen on local sockets in `sockets`, where bridges in other processes
    of the gateway meet them. Raises `TopologyError` for a gateway or part that is not there.
    """

    def __init__(
        self, topology: Topology, gateway: str, only: Collection[str] = (), sockets: Path | None = None
    ) -> None:
        self.gateway, self.only = gateway, frozenset(only)
        self._sockets = sockets if only else None
        self._loop: AbstractEventLoop | None = None
        self.topology = topology
        self.monitor = Monitor(gateway, self)
        self.parts = self._build(topology, {})
        self._timer: TimerHandle | None = None

    def _build(self, topology: Topology, old: dict[str, Part]) -> dict[str, Part]:
        """The parts of `topology`; those of `old` that are the same still, as they are."""
        if self.gateway not in topology.gateways:
            known = ", ".join(topology.gateways)
            raise TopologyError(f'no gateway "{self.gateway}" in {topology.name}; it has {known}')
        if old and topology.gateways[self.gateway] != self.topology.gateways[self.gateway]:
            old = {}
        buses = self._build_buses(topology, old)
        brokers = self._build_brokers(topology, old)
        parts = {**brokers, **buses, **self._build_bridges(topology, old, buses)}
        parts = {**self._build_taps(topology, old, parts), **parts}  # first to open, last to close
        self._check_only({part.name for part in parts.values()})
        return parts

    def _build_brokers(self, topology: Topology, old: dict[str, Part]) -> dict[str, Part]:
        old = old if old and topology.brokers == self.topology.brokers else {}  # they know each other
        return {
            f"broker {name}": same(old, f"broker {name}", spec) or BrokerPart(name, spec, topology)
            for name, spec in topology.brokers.items()
            if spec.on == self.gateway and self._wants(name)
        }

    def _build_buses(self, topology: Topology, old: dict[str, Part]) -> dict[str, Part]:
        gateway = topology.gateways[self.gateway]
        return {
            f"bus {name}": same(old, f"bus {name}", spec) or BusPart(name, spec, gateway, self._sockets)
            for name, spec in topology.buses.items()
            if spec.on == self.gateway and self._wants(name)
        }

    def _build_bridges(
        self, topology: Topology, old: dict[str, Part], buses: dict[str, Part]
    ) -> dict[str, Part]:
        here = {part.name: part for part in buses.values() if isinstance(part, BusPart)}
        made: dict[str, Part] = {}
        for name, spec in topology.bridges.items():
            if self.gateway in spec.on and self._wants(name):
                joined = {f"bus {side.bus}" for side in spec.join if side.bus is not None}
                stays = all(buses.get(key) is old.get(key) for key in joined)
                stays = stays and (len(spec.on) == 1 or topology.brokers == self.topology.brokers)
                part = same(old, f"bridge {name}", spec) if stays else None
                made[f"bridge {name}"] = part or BridgePart(
                    name, spec, topology, self.gateway, here, self._sockets, self.monitor.record
                )
        return made

    def _build_taps(
        self, topology: Topology, old: dict[str, Part], parts: dict[str, Part]
    ) -> dict[str, Part]:
        """A tap runs wherever something that it taps does; it stays if all of that stays."""
        made: dict[str, Part] = {}
        for name, spec in topology.devices.items():
            here = {part.name: part for part in parts.values() if isinstance(part, BusPart | BridgePart)}
            taps = [here[tapped] for tapped in spec.tap if tapped in here]
            if spec.on == self.gateway and taps:
                part = same(old, f"device {name}", spec)
                stays = isinstance(part, TapPart) and part.tapped == taps
                made[f"device {name}"] = (part if stays else None) or TapPart(
                    name, spec, topology, self.gateway, taps, self._sockets
                )
        return made

    def _wants(self, name: str) -> bool:
        return not self.only or name in self.only

    def _check_only(self, found: set[str]) -> None:
        missing = sorted(self.only - found)
        if missing:
            raise TopologyError(f"gateway {self.gateway} runs no {', '.join(missing)}")

    def open(self, loop: AbstractEventLoop) -> None:
        """Open everything, buses first. Raises `LinkError` with nothing left open."""
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
        """Bridges first, so that nothing new enters while buses close. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        for part in reversed(self.parts.values()):
            part.close()

    def hubs(self) -> Iterable[Hub]:
        return [part.hub for part in self.parts.values()]

    def event_hubs(self) -> Iterable[Hub]:
        """Where events are said: on the plain side of every bus here."""
        return [part.plain for part in self.parts.values() if isinstance(part, BusPart)]

    def links(self) -> list[Link]:
        return [link for part in self.parts.values() for link in part.links]

    def watched_links(self) -> Iterable[Link]:
        """Yield the links to media and the recorders. A bus's own links only log: their peers come and go."""
        for part in self.parts.values():
            if isinstance(part, BridgePart):
                yield from part.media
            elif isinstance(part, TapPart):
                yield from part.links

    def change(self, topology: Topology) -> list[str]:
        """Go over to another topology: only parts that differ are closed and opened. Names of those.

        A bridge is opened again too when a bus that it joins is.
        """
        assert self._loop is not None
        old, new = self.parts, self._build(topology, self.parts)
        changed = sorted(key for key in {*old, *new} if old.get(key) is not new.get(key))
        for key in reversed(old):
            if key in changed:
                old[key].close()
        self.parts, self.topology = new, topology
        for key, part in new.items():
            if key in changed:
                self._open_or_report(part)
        return changed

    def _open_or_report(self, part: Part) -> None:
        """At run time a part that cannot open must not take the others down."""
        assert self._loop is not None
        try:
            part.open(self._loop)
        except LinkError as error:
            log.error("%s: not running: %s", part.name, error)
            part.close()


def same(old: dict[str, Part], key: str, spec: BusSpec | BridgeSpec | BrokerSpec | DeviceSpec) -> Part | None:
    """The running part of that name, if its words have not changed."""
    part = old.get(key)
    return part if part is not None and part.spec == spec else None
