"""The parts that join links into one: a bus, a bridge. Each opens, closes, and tells whether it can stay."""

import zlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from appliance.brokers import candidate_of, same_brokers
from appliance.site import BasePart, Site
from bridges.bridge import Bridge, Side
from bridges.handover.window import AGE_S
from bridges.holdoff import STEP_S
from bridges.media import shedding
from bridges.media.medium import Medium
from bus.errors import LinkError
from bus.events import PATTERN
from bus.hub import Hub, Link, Pipe
from bus.leases.candidate import Candidate
from bus.patch import join
from bus.transports.links import Mode, bus_link
from bus.watched import WatchedHub
from topologies.model import Address, Gateway, Shed
from topologies.seats import Seat, seats_of
from topologies.segments import broker_urls, dials_of, has_trunk

if TYPE_CHECKING:
    from bus.leases.candidacy import Candidacy

_QUEUE_BYTES = 1 << 20


class BusPart(BasePart):
    """A bus: a plain hub; or, where a trunk reaches it, a bridge with a plain side and a trunk side."""

    kind = "bus"

    def __init__(self, name: str, site: Site) -> None:
        self.spec = spec = site.topology.buses[name]
        hub = Bridge(name, site.origin(f"bus {name}")) if has_trunk(spec) else WatchedHub(name)
        super().__init__(name, site, hub)
        self.plain: Hub = hub.side("plain", opaque=True) if isinstance(hub, Bridge) else hub
        self.trunk: Hub | None = None
        if isinstance(hub, Bridge):
            self.trunk = hub.side("trunk", trunk=True, opaque=True)
        self.ends += [(self._link(a, "listen"), self.hub_for(a.trunk)) for a in spec.listen]
        self.dials = dials_of(site.topology, name)
        self.ends += [(self._link(a, "dial"), self.hub_for(a.trunk)) for a in self.dials]
        self.ends += self._local_links()

    def _link(self, address: Address, mode: Mode) -> Link:
        limits = self.spec.limits(address)
        return bus_link(address.url, mode, *limits, address.tls, trunk=address.trunk)

    def _local_links(self) -> Iterable[tuple[Link, Hub]]:
        for trunk in (False, True) if self.trunk is not None else (False,):
            url = self.site.local_socket(self.name, trunk)
            if url is not None:
                limits = self.spec.limits(self.spec)
                yield bus_link(url, "listen", *limits, trunk=trunk), self.hub_for(trunk)

    def hub_for(self, trunk: bool | None) -> Hub:
        """Return where a pipe joins: the trunk side if there is one, unless `trunk` is False."""
        return self.plain if trunk is False or self.trunk is None else self.trunk

    def stays(self, site: Site) -> bool:
        """Return whether `site` describes the same bus."""
        same = site.topology.buses[self.name] == self.spec
        return same and dials_of(site.topology, self.name) == self.dials


class BridgePart(BasePart):
    """A bridge: its sides, a link for each medium, and a patch to each of the `buses` of this process."""

    kind = "bridge"
    hub: Bridge

    def __init__(self, name: str, site: Site, buses: Mapping[str, BusPart]) -> None:
        self.spec = site.topology.bridges[name]
        seats = seats_of(site.topology, name, site.gateway)
        self._buses = _joined(seats, buses)
        candidate = candidate_of(name, site)
        super().__init__(name, site, Bridge(name, _origin(candidate, name, site), self.spec.pattern))
        self.sides = [
            (seat, _side(self.hub, number, seat, lambda: candidate is None or not candidate.alone))
            for number, seat in enumerate(seats)
        ]
        self._patches: list[Pipe] = []
        linked = [(seat, side) for seat, side in self.sides if seat.side.bus not in self._buses]
        self.ends = [(self._link(seat), side) for seat, side in linked]
        self.watched = [
            link for (seat, _), link in zip(linked, self.links, strict=True) if seat.side.bus is None
        ]
        self.candidacy = None if candidate is None else self._stand_by(candidate)

    def _stand_by(self, candidate: Candidate) -> "Candidacy":
        """Forward only while we hold the lease."""
        # Late: most gateways run no candidate, and start faster without TMQ.
        from bus.leases.candidacy import Candidacy
        from bus.tmq.address import endpoint

        sheds = [seat.side.shed for seat, _ in self.sides]
        ages = [shed.age_ms / 1000 for shed in sheds if shed and shed.age_ms]
        deaf = [side.name for seat, side in self.sides if seat.side.medium and seat.side.medium.deaf]
        gate = self.hub.stand_by(candidate.may_forward, lambda: candidacy.judge(), deaf, min([AGE_S, *ages]))
        brokers = [endpoint(url) for url in broker_urls(self.site.topology)]
        candidacy = Candidacy(candidate, brokers, gate, self.links_down, self.site.record)
        return candidacy

    def links_down(self) -> list[str]:
        """Return the links on which no frames can pass: a candidate with such a link must not be chosen."""
        return [link.name for link in self.links if link.state != "up" or link.condition == "bus-off"]

    def _link(self, seat: Seat) -> Link:
        if seat.side.medium is not None:
            return medium_link(seat.side.medium, seat.side.shed, self.site.here)
        return self._dial_bus(str(seat.side.bus), seat)

    def _dial_bus(self, bus: str, seat: Seat) -> Link:
        spec, local = self.site.topology.buses[bus], self.site.local_socket(bus, seat.trunk)
        if spec.on == self.site.gateway and local is not None:
            return bus_link(local, "dial", *spec.limits(spec), trunk=seat.trunk)
        if seat.dial is None:
            kind = "a trunk address" if seat.trunk else "an address"
            raise LinkError(f"bus {bus}: it does not listen on {kind} that {self.site.gateway} can reach")
        url, listen = seat.dial
        return bus_link(url, "dial", *spec.limits(listen), listen.tls, trunk=seat.trunk)

    def stays(self, site: Site, buses: Mapping[str, BusPart]) -> bool:
        """Return whether `site` describes the same bridge, and what it joins and dials stays where it is."""
        seats = seats_of(site.topology, self.name, site.gateway)
        if site.topology.bridges[self.name] != self.spec or _joined(seats, buses) != self._buses:
            return False
        same = [(seat.dial, seat.keeps_events) for seat in seats] == [
            (seat.dial, seat.keeps_events) for seat, _ in self.sides
        ]
        return same and (self.candidacy is None or same_brokers(site, self.site))

    def open(self, loop: AbstractEventLoop) -> None:
        for seat, side in self.sides:
            if seat.side.bus in self._buses:
                bus = self._buses[seat.side.bus]
                self._patches.append(join(bus.hub_for(seat.side.trunk), side, self.name)[0])
        super().open(loop)
        if self.candidacy is not None:
            self.candidacy.open(loop)

    def close(self) -> None:
        if self.candidacy is not None:
            self.candidacy.close()
        for patch in self._patches:
            patch.close()
        self._patches.clear()
        super().close()


def medium_link(medium: Medium, words: Shed | None, gateway: Gateway) -> Link:
    """Return the link of one side of a bridge, not yet open. Raises `LinkError` if it can never work.

    The queue is as large as the medium's if the words do not say.
    """
    if words is None:
        return medium.link(gateway.node, None)
    age_s = None if words.age_ms is None else words.age_ms / 1000
    queue_bytes = words.queue_bytes or medium.queue_bytes or _QUEUE_BYTES
    return medium.link(gateway.node, shedding.Shed(words.policy, queue_bytes, age_s, words.rate))


def _origin(candidate: Candidate | None, name: str, site: Site) -> int:
    if candidate is not None:  # the candidates for one bridge stamp alike
        return zlib.crc32(f"{site.topology.name}/bridge {name}".encode())
    return site.origin(f"bridge {name}")


def _joined(seats: Iterable[Seat], buses: Mapping[str, BusPart]) -> dict[str | None, BusPart]:
    """Return the buses of this process that a bridge joins."""
    names = {seat.side.bus for seat in seats}
    return {name: bus for name, bus in buses.items() if name in names}


def _side(bridge: Bridge, number: int, seat: Seat, not_alone: Callable[[], bool]) -> Side:
    """Make a side with the rules of its words; an own `pattern` holds both ways."""
    spec = seat.side
    only: Iterable[Any] = [spec.pattern] if spec.pattern else []
    return bridge.side(
        f"{number} {spec.kind}",
        seat.trunk,
        opaque=spec.medium is None or spec.medium.opaque,
        allow=[*only, *spec.allow.both],
        deny=spec.deny.both,
        allow_in=spec.allow.inward,
        deny_in=spec.deny.inward,
        allow_out=spec.allow.outward,
        deny_out=[*spec.deny.outward, *([PATTERN] if seat.keeps_events else ())],
        hold_s=STEP_S * sum(seat.rank),
        hold_needed=(lambda: True) if seat.rank.others else not_alone,
    )
