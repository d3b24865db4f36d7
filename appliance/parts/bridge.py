"""A bridge of a gateway: its sides, and the links or patches by which they reach media and buses."""

import zlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from appliance.parts.broker import (
    Proofs,
    Standing,
    candidate_of,
    endpoints,
    is_same,
    proofs_of,
    standing_of,
)
from appliance.parts.bus import LIMITS, BusPart, bus_plan, certificates, stamped
from appliance.parts.changes import Change, Draft, End, Plan, differing, settings_of
from appliance.parts.patch import Patch
from appliance.parts.site import BasePart, Entry, Revision, Site
from appliance.status.rows import LinkRow
from bridges.bridge import Bridge, Policy, Side
from bridges.handover.gate import Rank
from bridges.handover.window import AGE_S
from bridges.holdoff import STEP_S
from bridges.media import shedding
from bridges.media.medium import Medium
from bus.errors import LinkError
from bus.hub import Link
from bus.keys import Keyring, ring_of
from bus.transports.options import Tls
from topologies.model import BridgeSpec, Gateway, Shed
from topologies.names import known
from topologies.picture.drawing import bridge_id
from topologies.resolved.sides import Seat
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import bus_at
from topologies.wiring.rings import age_s

if TYPE_CHECKING:
    from bus.leases.candidacy import Candidacy

_QUEUE_BYTES = 1 << 20
_SOFT = LIMITS | {"shed", "age_ms", "subscribe", "publish", "patterns", "mates", "names"}
Hear = Callable[[str, str], None]
"""Hears of an event: its kind and its cause."""
GRACE_S = 2.0
"""A holder of a lease keeps it while a link that a reload has added comes up, for so long."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of a running bridge, with its place in the file and what it joins."""

    number: int
    seat: Seat
    side: Side
    end: End[Link]


class BridgePart(BasePart):
    """A bridge: its sides, a link for each medium, and a patch to each of the `buses` of this process."""

    kind = "bridge"
    hub: Bridge

    def __init__(self, name: str, site: Site, buses: Mapping[str, BusPart], seats: list[Seat]) -> None:
        super().__init__(name, site, Bridge(name, 0))
        self.legs: list[Leg] = []
        self.candidacy: Candidacy | None = None
        self._hearing: tuple[Hear, ...] = ()
        self._standing: Standing | None = None
        self._unopened: list[tuple[Leg, str]] = []  # with the reasons
        self._fresh: list[
            tuple[Link, float]
        ] = []  # links that a reload opened, and until when they may come up
        self._loop: AbstractEventLoop | None = None
        draft = Draft([], self._plans(seats, site, buses))
        standing = standing_of(name, site)
        self._settle(site, standing, proofs_of(standing, site), seats, draft)

    @property
    def spec(self) -> BridgeSpec:
        return self.site.topology.bridges[self.name]

    @property
    def sides(self) -> list[tuple[Seat, Side]]:
        return [(leg.seat, leg.side) for leg in self.legs]

    @property
    def links(self) -> list[Link]:
        return [leg.end.link for leg in self.legs if not isinstance(leg.end.link, Patch)]

    @property
    def entries(self) -> list[Entry]:
        """The links by which messages come in and go out."""
        return [self._entry(leg) for leg in self.legs]

    def _entry(self, leg: Leg) -> Entry:
        topology, here, medium = self.site.topology, self.site.gateway, leg.seat.side.medium
        bus = leg.seat.side.bus
        if medium is not None and medium.dials:
            bus = bus_at(topology, medium.dials, here)
        is_near = bus is not None and topology.buses[bus].on == here
        away = "" if bus is None or is_near else bus
        return Entry(leg.end.plan.place, leg.side, leg.end.link, (), is_near, away)

    @property
    def id(self) -> str:
        return bridge_id(self.name, self.site.gateway)

    @property
    def rows(self) -> list[LinkRow]:
        return [*map(self._row, self.legs), *(self._row(leg, why) for leg, why in self._unopened)]

    def _row(self, leg: Leg, failure: str = "") -> LinkRow:
        edge = f"{self.id}/{leg.number}"
        return LinkRow(self.hub, leg.side.row(leg.end.link.name), leg.end.link, (edge,), failure)

    @property
    def watched(self) -> list[LinkRow]:
        return [self._row(leg) for leg in self.legs if leg.seat.side.bus is None]

    def _plans(self, seats: list[Seat], site: Site, buses: Mapping[str, BusPart]) -> list[Plan[Link]]:
        return [self._plan(seat, number, site, buses) for number, seat in enumerate(seats)]

    def _plan(self, seat: Seat, number: int, site: Site, buses: Mapping[str, BusPart]) -> Plan[Link]:
        medium, bus, policy = seat.side.medium, str(seat.side.bus), _policy(seat)
        if medium is not None:
            keys, told = keys_at(site.topology, seat.side, seat.trunk), self._told(medium, seat, number, site)
            return _medium_plan(medium, seat.side.shed, site.here, policy, keys, told)
        if bus in buses:
            settings = {"trunk": seat.trunk, "address": None}
            return Plan(
                f"bus {bus}",
                settings,
                lambda: Patch(self.name, lambda: buses[bus].hub_for(seat.trunk)),
                policy,
            )
        return self._bus_plan(bus, seat, site, policy)

    def _told(self, medium: Medium, seat: Seat, number: int, site: Site) -> dict[str, Any]:
        """Return what the link of a medium is told beside its settings, if it asks for that."""
        told: dict[str, Any] = {"mates": mates_of(self.name, site, number)} if medium.selective else {}
        told |= {"names": known(site.topology)} if medium.named else {}
        held_s = age_s(self.title, seat.trunk, None, site.rings) if medium.signs else 0.0
        return told | ({"held_s": held_s} if held_s else {})

    def _bus_plan(self, bus: str, seat: Seat, site: Site, policy: Policy) -> Plan[Link]:
        """Plan the link to a bus of another process or gateway."""
        spec, local = site.topology.buses[bus], site.local_socket(bus, seat.trunk)
        if spec.on == site.gateway and local is not None:
            return bus_plan(f"bus {bus}", local, "dial", seat.trunk, spec.limits(spec), None, policy)
        if seat.dial is None:
            kind = "a trunk address" if seat.trunk else "an address"
            raise LinkError(f"bus {bus}: it does not listen on {kind} that {site.gateway} can reach")
        url, listen = seat.dial
        limits, keys = spec.limits(listen), keys_of(site.topology, listen)
        patience_s = age_s(self.title, seat.trunk, listen.age_ms, site.rings)
        return bus_plan(
            f"bus {bus}", url, "dial", seat.trunk, limits, listen.tls, policy, keys=keys, age_s=patience_s
        )

    def _settle(
        self,
        site: Site,
        standing: Standing | None,
        proofs: Proofs,
        seats: list[Seat],
        draft: Draft[Link],
    ) -> None:
        """Take over what does not need opening: the sides and their rules, and the candidate."""
        renewed = not is_same(standing, self._standing)
        if renewed and self.candidacy is not None:
            self.candidacy.close()
        draft.close()
        self.site, self._standing = site, standing
        origin = self.origin(site) if standing is None else standing.origin
        self.hub.revise(origin, self.spec.pattern)
        self._seat(seats, draft)
        if standing is None:
            self.candidacy = None
            self.hub.stand_alone()
        elif renewed or self.candidacy is None:
            self.candidacy = self._stand_by(standing, proofs)
        else:
            self.candidacy.revise(endpoints(standing), standing.lease_ms, *proofs)
        if self.hub.gate is not None:
            self.hub.gate.keep(self._age_s())

    def _seat(self, seats: list[Seat], draft: Draft[Link]) -> None:
        old = self.legs
        for gone in draft.gone:
            self.hub.remove(old[gone].side)
        self.legs = []
        for number, (seat, end, place) in enumerate(zip(seats, draft.ends, draft.partners, strict=True)):
            policy = _policy(seat)
            side = self._add(seat, policy) if place is None else old[place].side
            if side.policy != policy:
                side.revise(policy)
            self.legs.append(Leg(number, seat, side, end))

    def _add(self, seat: Seat, policy: Policy) -> Side:
        taken = {side.name.partition(" ")[0] for side in self.hub.sides}
        number = next(number for number in range(len(taken) + 1) if str(number) not in taken)
        return self.hub.side(f"{number} {seat.side.kind}", policy, self._not_alone)

    def _not_alone(self) -> bool:
        return self.candidacy is None or not self.candidacy.candidate.alone

    def _age_s(self) -> float:
        """Return how long a standby keeps frames: no longer than they may wait on any side."""
        sheds = [leg.seat.side.shed for leg in self.legs]
        ages = [shed.age_ms / 1000 for shed in sheds if shed and shed.age_ms]
        return min([AGE_S, *ages])

    def _stand_by(self, standing: Standing, proofs: Proofs) -> "Candidacy":
        """Forward only while we hold the lease."""
        # Late: most gateways run no candidate, and start faster without TMQ.
        from bus.leases.candidacy import Candidacy

        candidate = candidate_of(standing)
        rank = Rank(standing.on, standing.of)
        gate = self.hub.stand_by(candidate.may_forward, lambda: candidacy.judge(), rank=rank)
        candidacy = Candidacy(
            candidate,
            endpoints(standing),
            gate,
            self.links_down,
            self._record,
            self.name,
            keys=proofs.keys,
            security=proofs.security,
        )
        return candidacy

    def tap_events(self, hear: Hear) -> None:
        """Call `hear` with the kind and cause of every event of the candidate from now on."""
        self._hearing += (hear,)

    def untap_events(self, hear: Hear) -> None:
        """Call `hear` no more. No error if it is not there."""
        self._hearing = tuple(other for other in self._hearing if other is not hear)

    def _record(self, kind: str, source: str, cause: str, level: int, **counts: int) -> None:
        self.site.record(kind, source, cause, level, **counts)
        for hear in self._hearing:
            hear(kind, cause)

    def links_down(self) -> list[str]:
        """Return the links on which no frames can pass: a candidate with such a link must not be chosen."""
        return [
            *(why for _, why in self._unopened),
            *(link.name for link in self.links if not self._is_up(link)),
        ]

    def _is_up(self, link: Link) -> bool:
        if link.state == "up":
            return link.condition != "bus-off"
        holding = self.candidacy is not None and self.candidacy.candidate.holding
        return holding and any(one is link and self._now() < until_s for one, until_s in self._fresh)

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def revise(self, site: Site, buses: Mapping[str, BusPart], seats: list[Seat]) -> Revision:
        """Return the change to the bridge as `site` describes it. Raises `LinkError` if it can never work."""
        standing = standing_of(self.name, site)
        proofs = proofs_of(standing, site)
        draft = Draft([leg.end for leg in self.legs], self._plans(seats, site, buses))
        renewed = not is_same(standing, self._standing)
        return Revision(
            [
                *self._changes(site, standing),
                *draft.changes(self.title, lambda n: self._more(n, seats, draft)),
            ],
            lambda: self._settle(site, standing, proofs, seats, draft),
            lambda loop: self._change(draft, renewed, loop),
            lambda: dict.fromkeys(self._places(), True) | draft.fates(),
        )

    def _places(self) -> list[str]:
        return [leg.end.plan.place for leg in self.legs]

    def _changes(self, site: Site, standing: Standing | None) -> list[Change]:
        names = list[str]()
        if standing is None or self._standing is None:
            names += ["on"] if standing is not self._standing else []
        else:
            names += differing(self._standing._asdict(), standing._asdict())
        if "pattern" not in names and site.topology.bridges[self.name].pattern != self.spec.pattern:
            names.append("pattern")
        return [Change("changed", self.title, detail=", ".join(names))] if names else []

    def _more(self, number: int, seats: list[Seat], draft: Draft[Link]) -> list[str]:
        """Name the words of a side that differ and are none of its link's."""
        place, new = draft.partners[number], seats[number]
        old = new if place is None else self.legs[place].seat
        names = differing(settings_of(old.side), settings_of(new.side))
        names += ["rank"] if old.rank != new.rank else []
        names += ["what stays in"] if old.keeps != new.keeps else []
        return [name for name in names if name not in ("bus", "medium")]

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        return self._open([leg.end for leg in self.legs], True, loop)

    def _change(self, draft: Draft[Link], renewed: bool, loop: AbstractEventLoop) -> list[Change]:
        for end in draft.staying():
            if isinstance(end.link, Patch):
                end.link.follow()
        now = loop.time()
        fresh = {id(end.link): now + GRACE_S for end in draft.fresh()}
        before = {id(link): until_s for link, until_s in self._fresh}
        until = {**before, **fresh}
        self._fresh = [(link, until[id(link)]) for link in self.links if until.get(id(link), now) > now]
        return self._open(draft.fresh(), renewed, loop)

    def _open(self, ends: list[End[Link]], claims: bool, loop: AbstractEventLoop) -> list[Change]:
        self._loop, self._unopened = loop, []
        failed = list[Change]()
        for leg in [leg for leg in self.legs if any(leg.end is end for end in ends)]:
            trouble = self.attempt(leg.end.plan.place, leg.end.link, leg.side, loop)
            if trouble:
                self.legs.remove(leg)
                self.hub.remove(leg.side)
                self._unopened.append((leg, trouble[0].detail))
            failed += trouble
        if claims and self.candidacy is not None:
            self.candidacy.open(loop)
        return failed

    def close(self) -> None:
        if self.candidacy is not None:
            self.candidacy.close()
        for leg in self.legs:
            leg.end.link.close()


def mates_of(bridge: str, site: Site, number: int) -> int:
    """Return a number of a side of a bridge that several gateways run, or 0 if only one does.

    It is the same at all candidates, but for the last 8 bits, which are the candidate's place in the list.
    """
    standing = standing_of(bridge, site)
    if standing is None:
        return 0
    return zlib.crc32(f"{standing.origin} {number}".encode()) & ~0xFF | standing.on


def _medium_plan(
    medium: Medium,
    shed: Shed | None,
    here: Gateway,
    policy: Policy,
    keys: tuple[str, ...],
    told: dict[str, Any],
) -> Plan[Link]:
    node = here.node if medium.needs_node else None
    own = settings_of(medium)
    renewed = [certificates(value) for value in own.values() if isinstance(value, Tls)]
    settings = {**own, **told, "shed": shed, "node": node, "certificates": renewed, "keys": stamped(keys)}

    def make() -> Link:
        return medium_link(medium, shed, here, ring_of(keys), **told)

    return Plan(medium.label(), settings, make, policy, _SOFT)


def medium_link(
    medium: Medium, words: Shed | None, gateway: Gateway, keys: Keyring | None = None, **told: Any
) -> Link:
    """Return the link of one side of a bridge, not yet open. Raises `LinkError` if it can never work.

    The queue is as large as the medium's if the words do not say. `keys` are for a medium that signs, and
    `told` is what else the medium asks for (`Medium.link`).
    """
    told |= {"keys": keys} if keys is not None else {}
    if words is None:
        return medium.link(gateway.node, None, **told)
    age_s = None if words.age_ms is None else words.age_ms / 1000
    queue_bytes = words.queue_bytes or medium.queue_bytes or _QUEUE_BYTES
    shed = shedding.Shed(words.policy, queue_bytes, age_s, words.rate)
    return medium.link(gateway.node, shed, **told)


def _policy(seat: Seat) -> Policy:
    """Return the rules of a side, by its words and by its medium's."""
    spec, allowed, denied = seat.side, seat.side.allowed, seat.side.denied
    return Policy(
        seat.trunk,
        allow=allowed.both,
        deny=denied.both,
        allow_in=allowed.inward,
        deny_in=denied.inward,
        allow_out=allowed.outward,
        deny_out=(*denied.outward, *seat.keeps),
        opaque=spec.medium is None or spec.medium.opaque,
        hold_s=STEP_S * sum(seat.rank),
        hold_always=bool(seat.rank.others),
        deaf=spec.medium is not None and spec.medium.deaf,
    )
