"""A bridge of a gateway: its sides, and the links or patches by which they reach media and buses.

`appliance/parts/side.py` makes the link and the rules of one side.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from appliance.parts.bus import BusPart, bus_plan
from appliance.parts.candidate import Proofs, candidate_of, endpoints, proofs_of
from appliance.parts.changes import Change, Draft, Plan, PlannedLink, differing, of_settings
from appliance.parts.patch import Patch
from appliance.parts.reading import Reading
from appliance.parts.side import door_of, far_of, label_of, medium_plan
from appliance.parts.site import BasePart, Entry, Revision, Site
from appliance.status.conditions import carries
from appliance.status.rows import LinkRow, apart
from appliance.status.view import Beside
from bridges.announcing import Trunks
from bridges.bridge import Bridge
from bridges.handover.entrance import Rank, spanning
from bridges.side import Side
from bus.announcements import off_trunk
from bus.errors import LinkError
from bus.hub import Hub, Link, Pipe, Retrying
from bus.report import Reporter
from bus.schema import settings_of
from bus.wire.pattern import Pattern
from topologies.resolved.bridges import ResolvedBridge, ResolvedJoin, ResolvedSide
from topologies.resolved.brokers import CandidateFacts
from topologies.resolved.buses import BusAddress

if TYPE_CHECKING:
    from bridges.handover.gate import Gate
    from bus.leases.candidacy import Candidacy
    from bus.tmq.wire import Address

Hear = Callable[[str, str], None]
"""A function that hears of an event: its kind and its cause."""
GRACE_S = 2.0
"""A holder of a lease keeps it while a link that a reload has added comes up, for so long."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of a running bridge, with what it joins, and the row of its link in a status.

    `door` is the hub that the link is opened on: the side, or its front. `reading` has the last values of the
    side's devices, None where nothing is known of them.
    """

    row: LinkRow
    resolved: ResolvedSide
    side: Side
    end: PlannedLink[Link]
    door: Hub
    reading: Reading | None


class BridgePart(BasePart):
    """A bridge: its sides, a link for each medium, and a patch to each of the `buses` of this process."""

    kind = "bridge"
    hub: Bridge

    def __init__(self, resolved: ResolvedBridge, site: Site, buses: Mapping[str, BusPart]) -> None:
        hub = Bridge(resolved.name, 0, clock=site.clock, announced=self._announced)
        super().__init__(resolved.name, site, hub)
        self.resolved = resolved
        self.legs: list[Leg] = []
        self._trunks = Trunks()
        self.candidacy: Candidacy | None = None
        self._gate: Gate | None = None
        self._hearing: tuple[Hear, ...] = ()
        self._unopened: list[LinkRow] = []
        # Of legs and links that could not be opened: they change at reloads only.
        self._rows: list[LinkRow] = []
        self._watched: list[LinkRow] = []
        self._links: list[Link] = []
        # Links that a reload opened, and until when they may come up.
        self._fresh: list[tuple[Link, float]] = []
        self._loop: AbstractEventLoop | None = None
        draft = Draft([], self._plans(resolved, buses))
        self._settle(resolved, proofs_of(resolved.candidate), draft)

    @property
    def links(self) -> list[Link]:
        return self._links

    @property
    def entries(self) -> list[Entry]:
        """The links by which messages come in and go out."""
        return [self._entry(leg) for leg in self.legs]

    def _entry(self, leg: Leg) -> Entry:
        resolved = leg.resolved
        return Entry(leg.end.plan.place, leg.side, leg.end.link, (), resolved.near, resolved.away, leg.door)

    @property
    def id(self) -> str:
        return self.resolved.id

    @property
    def rows(self) -> list[LinkRow]:
        return self._rows

    @property
    def services(self) -> list[Reporter]:
        return [leg.reading for leg in self.legs if leg.reading is not None]

    @property
    def watched(self) -> list[LinkRow]:
        return self._watched

    def _note_rows(self) -> None:
        self._rows = apart([*(leg.row for leg in self.legs), *self._unopened])
        self._watched = apart(leg.row for leg in self.legs if leg.resolved.bus is None)
        self._links = [leg.end.link for leg in self.legs if not isinstance(leg.end.link, Patch)]

    def _plans(self, resolved: ResolvedBridge, buses: Mapping[str, BusPart]) -> list[Plan[Link]]:
        return [self._plan(side, buses) for side in resolved.sides]

    def _plan(self, side: ResolvedSide, buses: Mapping[str, BusPart]) -> Plan[Link]:
        """Plan the link of a side. Raises `LinkError` for a bus that cannot be reached.

        Where a front comes or goes, the link is opened anew.
        """
        plan = self._link_plan(side, buses)
        return replace(plan, settings={**plan.settings, "front": side.front is not None})

    def _link_plan(self, side: ResolvedSide, buses: Mapping[str, BusPart]) -> Plan[Link]:
        policy, bus = side.policy, side.bus
        if side.medium is not None:
            stops = side.medium.protocol is not None and side.medium.protocol.stops_in_doubt
            return medium_plan(side.medium, policy, partial(self._may_act, stops))
        assert bus is not None  # a side has one or the other
        part = buses.get(bus.name)
        if part is None:
            return bus_plan(f"bus {bus.name}", "dial", self._address(side.trunk, bus), policy)
        settings = {"trunk": side.trunk, "address": None}
        make = partial(Patch, self.name, partial(part.hub_for, side.trunk))
        return Plan(f"bus {bus.name}", settings, make, policy)

    def _may_act(self, stops_in_doubt: bool, now_s: float) -> bool:
        """Tell whether this gateway may ask and write at a device now: no other one does."""
        gate, candidacy = self.hub.gate, self.candidacy
        if gate is None or candidacy is None:
            return True
        if stops_in_doubt and candidacy.candidate.in_doubt:
            return False
        return gate.forwarding and not gate.lapsed()

    def _address(self, trunk: bool, bus: ResolvedJoin) -> BusAddress:
        """Return where to dial a bus of another process or gateway."""
        local = self.site.local_socket(bus.name, trunk)
        if bus.here and local is not None:
            return BusAddress(trunk, local, *bus.limits)
        if bus.dial is None:
            kind = "a trunk address" if trunk else "an address"
            text = f"it does not listen on {kind} that {self.site.gateway} can reach"
            raise LinkError(f"bus {bus.name}: {text}")
        return bus.dial

    def _settle(self, resolved: ResolvedBridge, proofs: Proofs, draft: Draft[Link]) -> None:
        """Take over what does not need opening: the sides and their rules, and the candidate."""
        facts = resolved.candidate
        renewed = self._is_another(facts)
        if renewed and self.candidacy is not None:
            self.candidacy.close()
        draft.close()
        self.resolved = resolved
        self.hub.revise(facts.origin if facts else self.origin(resolved.origin), resolved.pattern)
        self._take_sides(resolved.sides, draft)
        if facts is None:
            self.candidacy = None
            self.hub.stand_alone()
        elif facts.parallel:
            self.candidacy = None
            if renewed or self.hub.gate is None:
                self.hub.forward_beside_others(Rank(facts.on, facts.of))
        elif renewed or self.candidacy is None:
            self.candidacy = self._stand_by(facts, proofs)
        else:
            bounds_ms = facts.lease_ms, facts.lease_max_ms
            self.candidacy.revise(endpoints(facts), *bounds_ms, *proofs, order=facts.on)
        if self.candidacy is not None and facts is not None and self._gate is not None:
            self._gate.keep(self._age_s(facts))
            self._gate.take_rank(Rank(facts.on, facts.of))

    def _is_another(self, facts: CandidateFacts | None) -> bool:
        """Return whether the gateway becomes another candidate for this bridge, or none any more."""
        now = self.resolved.candidate
        return facts is not now if facts is None or now is None else not facts.is_same(now)

    def _take_sides(self, sides: Sequence[ResolvedSide], draft: Draft[Link]) -> None:
        old = self.legs
        for gone in draft.gone:
            self.hub.remove(old[gone].side)
        self.legs = []
        for number, (resolved, end, place) in enumerate(zip(sides, draft.ends, draft.partners, strict=True)):
            side = self._add(resolved) if place is None else old[place].side
            if side.policy != resolved.policy:
                self.hub.revise_side(side, resolved.policy)
            name, edges = side.row(end.link.name), (f"{self.id}/{number}",)
            label, far = label_of(resolved, end.link.name), far_of(resolved)
            row = LinkRow(self.hub, name, end.link, edges, label=label, far=far)
            before = None if place is None else old[place]
            door = door_of(side, resolved.front, None if before is None else before.door)
            kept = None if before is None else before.reading
            reading = self._reading(side, resolved, end.link.name, kept)
            self.legs.append(Leg(row, resolved, side, end, door, reading))
        self._note_rows()

    def _reading(self, side: Side, resolved: ResolvedSide, link: str, old: Reading | None) -> Reading | None:
        """Return what keeps the last values of a side's devices: the old one, if there is one, revised."""
        quantities = () if resolved.medium is None else resolved.medium.quantities
        if old is not None and quantities:
            old.values.revise(quantities)
            return old
        if old is not None:
            old.close()
        return Reading(side, f"{self.title}, {link}", quantities) if quantities else None

    def _add(self, resolved: ResolvedSide) -> Side:
        taken = {side.name.partition(" ")[0] for side in self.hub.sides}
        number = next(number for number in range(len(taken) + 1) if str(number) not in taken)
        return self.hub.side(f"{number} {resolved.side.kind}", resolved.policy, self._not_alone)

    def _not_alone(self) -> bool:
        return self.candidacy is None or not self.candidacy.candidate.alone

    def _age_s(self, facts: CandidateFacts) -> float:
        """Return how long a standby keeps frames: as long as any side may get them."""
        ages = [leg.resolved.policy.replay_s or 0.0 for leg in self.legs]
        return max(spanning(facts.lease_max_ms), *ages)

    def _stand_by(self, facts: CandidateFacts, proofs: Proofs) -> "Candidacy":
        """Make the candidate, and let the bridge forward only while it holds the lease."""
        # Late: most gateways run no candidate, and start faster without TMQ.
        from bus.leases.candidacy import Candidacy
        from bus.leases.link import BrokerLink

        candidate = candidate_of(facts)
        rank = Rank(facts.on, facts.of)
        gate = self._gate = self.hub.stand_by(
            candidate.may_forward,
            lambda: candidacy.judge(),
            rank=rank,
            in_doubt=lambda: candidate.in_doubt,
        )
        candidacy = Candidacy(
            candidate,
            endpoints(facts),
            gate,
            self.links_down,
            self._record,
            self.name,
            link=partial(BrokerLink, hear=self.site.hear),
            keys=proofs.keys,
            security=proofs.security,
            freed=self._hurry,
        )
        return candidacy

    def _hurry(self) -> None:
        """Have the links that wait try at once: the gateway that forwarded may have let go of a device."""
        for link in self.links:
            if isinstance(link, Retrying):
                link.hurry()

    def _announced(self, message: bytes, pipe: Pipe | None) -> str:
        """Take an announcement that came by a trunk, and pass it on to nobody: a bridge joins no buses for
        them. Return why it is rejected.
        """
        self._trunks.heard(pipe)
        found = self.site.hear(off_trunk(message)) if off_trunk(message) else ""
        return found if isinstance(found, str) else ""

    def announce(self, frame: bytes, told: "set[Address]") -> None:
        for leg in self.legs:
            if leg.resolved.trunk and leg.resolved.away:
                self._trunks.say(leg.side.pipes, frame)
        if self.candidacy is not None:
            self.candidacy.announce(frame, told)

    def tap_events(self, hear: Hear) -> None:
        """Call `hear` with the kind and cause of every event of the candidate from now on."""
        self._hearing += (hear,)

    def untap_events(self, hear: Hear) -> None:
        """Stop calling `hear`. No error if it was not called."""
        self._hearing = tuple(other for other in self._hearing if other is not hear)

    def _record(self, kind: str, source: str, cause: str, level: int, **counts: int) -> None:
        self.site.record(kind, source, cause, level, **counts)
        for hear in self._hearing:
            hear(kind, cause)

    def links_down(self) -> list[str]:
        """Return the links on which no frames can pass: a candidate with such a link must not be chosen."""
        return [
            *(row.failure for row in self._unopened),
            *(link.name for link in self.links if not self._is_up(link)),
        ]

    @property
    def beside(self) -> Beside | None:  # type: ignore[override]
        """The role of this gateway where all forward at once."""
        facts = self.resolved.candidate
        if facts is None or not facts.parallel:
            return None
        down = next(iter(self.links_down()), "")
        return Beside(self.name, facts.lease, Pattern(*facts.pattern), facts.gateway, down)

    def _is_up(self, link: Link) -> bool:
        if link.state == "up":
            return carries(link.state, link.condition)
        holding = self.candidacy is not None and self.candidacy.candidate.holding
        return holding and any(one is link and self._now() < until_s for one, until_s in self._fresh)

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def revise(self, resolved: ResolvedBridge, buses: Mapping[str, BusPart]) -> Revision:
        """Return the change to the bridge as `resolved` has it. Raises `LinkError` if it can never work."""
        proofs = proofs_of(resolved.candidate)
        draft = Draft([leg.end for leg in self.legs], self._plans(resolved, buses))
        renewed = self._is_another(resolved.candidate)
        links = draft.changes(self.title, lambda number: self._more(number, resolved.sides, draft))
        return Revision(
            [*self._changes(resolved), *links],
            partial(self._settle, resolved, proofs, draft),
            partial(self._change, draft, renewed),
            partial(self._fates, draft),
        )

    def _fates(self, draft: Draft[Link]) -> dict[str, bool]:
        """Return by place whether the link of each side would stay: where nothing differs, it does."""
        return {leg.end.plan.place: True for leg in self.legs} | draft.fates()

    def _changes(self, new: ResolvedBridge) -> list[Change]:
        names, old = list[str](), self.resolved
        if old.candidate is None or new.candidate is None:
            names += ["on"] if old.candidate is not new.candidate else []
        else:
            names += differing(old.candidate._asdict(), new.candidate._asdict())
        if "pattern" not in names and new.pattern != old.pattern:
            names.append("pattern")
        return of_settings(self.title, names)

    def _more(self, number: int, sides: Sequence[ResolvedSide], draft: Draft[Link]) -> list[str]:
        """Return the settings of a side that differ and are none of its link's."""
        place, new = draft.partners[number], sides[number]
        old = new if place is None else self.legs[place].resolved
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

    def _open(self, ends: list[PlannedLink[Link]], claims: bool, loop: AbstractEventLoop) -> list[Change]:
        self.forgive()
        self._loop, self._unopened = loop, []
        failed = list[Change]()
        for leg in [leg for leg in self.legs if any(leg.end is end for end in ends)]:
            trouble = self.attempt(leg.end.plan.place, leg.end.link, leg.door, loop)
            if trouble:
                self.legs.remove(leg)
                self.hub.remove(leg.side)
                self._unopened.append(leg.row._replace(failure=trouble[0].detail))
            failed += trouble
        self._note_rows()
        if claims and self.candidacy is not None:
            self.candidacy.open(loop)
        return failed

    def close(self) -> None:
        if self.candidacy is not None:
            self.candidacy.close()
        for leg in self.legs:
            leg.end.link.close()
