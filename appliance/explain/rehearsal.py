"""A rehearsal: one frame goes through the hubs and bridges of all gateways, with nothing opened.

The parts are those that `run` would open, so their own rules, envelopes and hops decide, and their ledgers
say why a frame stopped. In place of links they have probes: pipes that keep the batches that they are given,
to be handed to the probe at the other end. Of candidates for one bridge the first forwards, as if all were
well.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from appliance.explain.hop import Exit, Hop, gained
from appliance.parts.bridge import BridgePart, Leg
from appliance.parts.build import Builder, Part
from appliance.parts.bus import BusPart
from appliance.parts.site import Site
from bridges.durable.sifting import KEEP_ALL, Sieve
from bridges.permits import REASON, refuses
from bus.hub import Hub, Pipe
from bus.ledger import Account, Stats
from bus.names import Names
from bus.schema import number
from bus.transports.peers import Peer
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import take_apart
from bus.wire.frame import unpack
from bus.wire.notation import text_of
from topologies.model import Side, candidates_of
from topologies.names import used
from topologies.resolved.bare import bare
from topologies.resolved.bridges import ResolvedSide
from topologies.resolved.buses import BusEnd
from topologies.resolved.resolve import Resolved

AGAIN = "comes a second time"
"""The reason why a rehearsal ends at a link: plain links make a loop, or two ways lead there."""


class _Probe(Pipe):
    """A pipe in place of a link of a part. It keeps the batches that it is given in `taken`.

    `account` is the name of its account in the ledger of the part. `others` are the probes at the other end,
    or all on the same wire. `outside`: somebody who is no part of the file may be at the other end. What
    passes `sieve` is kept in a journal for the gateways in `keeps`.
    """

    def __init__(self, part: BusPart | BridgePart, hub: Hub, end: str, remarks: tuple[str, ...] = ()) -> None:
        self.part, self.hub, self.end, self.remarks = part, hub, end, remarks
        self.name = self.link = end
        self.account = end if hub is part.hub else f"{hub.name}/{end}"
        self.stats, self.taken = Stats(), list[Batch]()
        self.others: list[_Probe] = []
        self.peers: tuple[Peer, ...] = ()
        self.outside = True  # somebody who is no part of this file may be at the other end
        self.renames = False
        self.keeps: tuple[str, ...] = ()
        self.sieve = KEEP_ALL
        hub.attach(self)

    @property
    def title(self) -> str:
        return f"{self.part.title}: {self.end}"

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.taken.append(batch)

    def close(self) -> None:
        pass


class Rehearsal:
    """The parts of all gateways of a topology, ready for one frame.

    `gateways` has the record of each gateway, and `names` names of tokens beside those of the file. Raises
    `BusError` for parts that could never run.
    """

    def __init__(self, gateways: Sequence[Resolved], names: Iterable[int | str] = ()) -> None:
        self._topology = gateways[0].topology
        self._names = Names([*names, *used(self._topology)])
        self._parts = [part for gateway in gateways for part in _parts(gateway)]
        self._buses = {part.name: part for part in self._parts if isinstance(part, BusPart)}
        self._about = {part.title: self._words(part) for part in self._parts}
        self._probes: list[_Probe] = []
        self._wires: dict[str, list[_Probe]] = {}
        for bus in self._buses.values():
            self._add_bus(bus)
        for part in self._parts:
            if isinstance(part, BridgePart) and self._forwards(part):
                self._add_bridge(part)

    def _forwards(self, part: BridgePart) -> bool:
        first = candidates_of(self._topology, part.name)[0]
        return (first.bridge, first.gateway) == (part.name, part.site.gateway)

    def _probe(self, part: BusPart | BridgePart, hub: Hub, end: str, remarks: tuple[str, ...] = ()) -> _Probe:
        made = _Probe(part, hub, end, remarks)
        self._probes.append(made)
        return made

    def _add_bus(self, part: BusPart) -> None:
        for end in part.resolved.links:
            made = self._bus_probe(part, end, end.place)
            if end.mode == "listen":
                made.remarks = ("trunk",) if end.at.trunk else ()
            if end.bus:
                there = self._buses[end.bus]
                far = next(one for one in there.resolved.links if one.place == end.far)
                _connect(made, self._bus_probe(there, far, part.title))

    def _bus_probe(self, part: BusPart, end: BusEnd, name: str) -> _Probe:
        """Add a probe called `name` in place of a link of a bus, with the list of its peers."""
        made = self._probe(part, part.hub_for(end.at.trunk), name)
        made.peers = end.at.peers or ()
        made.keeps, made.sieve = end.at.keeps_for, Sieve(end.at.kept)
        return made

    def _add_bridge(self, part: BridgePart) -> None:
        part.hub.stand_alone()
        for leg in part.legs:
            made = self._probe(part, leg.door, leg.end.plan.place, self._remarks(leg))
            made.renames = bool(leg.resolved.side.renaming)
            # The remarks say that it waits.
            part.hub.revise_side(leg.side, leg.side.policy._replace(hold_s=0.0))
            if leg.resolved.leads:
                self._meet(made, leg.resolved)
            else:
                wire = self._wires.setdefault(leg.resolved.segment, [])
                wire.append(made)
                made.others = wire

    def _meet(self, probe: _Probe, side: ResolvedSide) -> None:
        """Connect a probe of a bridge with the bus that the side leads to."""
        there = self._buses[side.leads]
        far = self._probe(there, there.hub_for(side.trunk), probe.part.title)
        far.peers = () if side.near or side.bus is None else side.bus.peers
        _connect(probe, far)

    def _remarks(self, leg: Leg) -> tuple[str, ...]:
        side, shed = leg.resolved.side, leg.resolved.side.shed
        found = [*side.renaming.words(), *_lists(side), *_thinned(side)]
        if shed is not None:
            words = [f"shed {shed.policy} when it is too slow"]
            words += [f"dropped after {shed.age_ms} ms"] if shed.age_ms else []
            words += [f"at most {number(shed.rate)} a second"] if shed.rate else []
            found.append(", ".join(words))
        wait_s = leg.side.policy.hold_s
        found += [f"waits {wait_s * 1000:g} ms for others to send it first"] if wait_s else []
        return tuple(found)

    def starts(self) -> list[str]:
        """Return the names of the links by which a frame can come in from outside."""
        return [probe.title for probe in self._probes if probe.outside]

    def run(self, frame: bytes, start: str) -> Iterator[Hop]:
        """Yield every hop of a frame that somebody sends to the link `start`, one of `starts()`."""
        first = next(probe for probe in self._probes if probe.title == start)
        batch = from_payloads([frame])
        heard = first.others if first in first.others else [first]  # on a wire all hear it
        waiting = deque((probe, batch) for probe in heard)
        seen = set[_Probe]()
        while waiting:
            probe, batch = waiting.popleft()
            if probe in seen:
                yield Hop(probe.part.title, probe.part.site.gateway, probe.end, stopped=(AGAIN,))
                continue
            seen.add(probe)
            yield self._hop(probe, batch, len(frame), waiting)

    def _hop(self, probe: _Probe, batch: Batch, size: int, waiting: "deque[tuple[_Probe, Batch]]") -> Hop:
        part, others = probe.part, [one for one in self._probes if one.part is probe.part]
        refused = (REASON,) if refuses(probe.peers, batch, sending=True) else ()
        before, inside = part.hub.accounts(), list[Batch]()
        if not refused:
            part.hub.tap(tap := lambda entered, _: inside.append(entered))
            probe.hub.publish(batch, probe)
            part.hub.untap(tap)
        after = part.hub.accounts()
        stopped = refused or _gained(after, before, probe.account)[0]
        ways_out = [] if stopped else [one for one in others if one is not probe]
        exits = tuple(self._exit(one, before, after, size, waiting) for one in ways_out)
        where = part.title, part.site.gateway, probe.end
        named = self._named("is here", inside) if probe.renames else ()
        return Hop(*where, stopped=stopped, exits=exits, remarks=(*named, *self._about[part.title]))

    def _named(self, word: str, batches: Sequence[Batch]) -> tuple[str, ...]:
        """Return how a frame is called, after a word; nothing for a message that is none."""
        return tuple(f"{word} {self._names.show(unpack(frame).tokens)}" for frame in _frames(batches))

    def _exit(
        self,
        probe: _Probe,
        before: Mapping[str, Account],
        after: Mapping[str, Account],
        size: int,
        waiting: "deque[tuple[_Probe, Batch]]",
    ) -> Exit:
        _, stopped = _gained(after, before, probe.account)
        taken, probe.taken = probe.taken, []
        refused = tuple(REASON for batch in taken if refuses(probe.peers, batch, sending=False))
        if not refused:
            waiting += ((other, batch) for batch in taken for other in probe.others if other is not probe)
        stopped = stopped or refused
        named = self._named("as", taken) if probe.renames else ()
        remarks = (*named, *probe.remarks, *_kept(probe, taken), *self._on_wire(probe, taken, size))
        return Exit(probe.end, None if stopped else 0, stopped=stopped, remarks=remarks)

    def _on_wire(self, probe: _Probe, taken: Sequence[Batch], size: int) -> Iterator[str]:
        """Yield how the medium carries a frame that left by a probe, and for how long."""
        if not isinstance(probe.part, BridgePart):
            return
        (leg,) = [leg for leg in probe.part.legs if leg.door is probe.hub]
        medium, frames = leg.resolved.side.medium, list(_frames(taken))
        if medium is None:
            return
        names = unpack(frames[0]).tokens if frames else ()
        yield from medium.remarks(names)
        seconds = medium.seconds_of(names, size, leg.resolved.trunk)
        if seconds is not None:
            yield f"{seconds * 1000:.3g} ms on the wire"

    def _words(self, part: Part) -> tuple[str, ...]:
        """Return remarks about a part: devices that see its messages, its pattern, bridges that stand by."""
        devices = self._topology.devices.items()
        found = [f"device {name} ({one.key})" for name, one in devices if part.name in one.joins]
        if isinstance(part, BridgePart):
            found += [f"pattern {text_of(part.resolved.pattern)}"] if part.resolved.pattern else []
            mates = candidates_of(self._topology, part.name)[1:]
            found += [f"bridge {mate.bridge} on {mate.gateway} stands by" for mate in mates]
        return tuple(found)


def _frames(batches: Sequence[Batch]) -> Iterator[bytes]:
    """Yield the frames of the first batch, without envelopes."""
    parts = (take_apart(message) for batch in batches[:1] for message in payloads(batch))
    return (one.content for one in parts if one.is_frame)


def _kept(probe: _Probe, taken: Sequence[Batch]) -> Iterator[str]:
    """Yield for whom what left by a probe is kept in a journal."""
    if probe.keeps and any(probe.sieve.divided(batch)[0] for batch in taken):
        yield f"kept for {', '.join(probe.keeps)} until acknowledged"


def _parts(gateway: Resolved) -> Iterable[Part]:
    """Return the parts of a gateway as `run` would open them. Their events go nowhere."""
    site = Site(gateway.gateway, None, lambda *_: None)
    return Builder(bare(gateway), site, frozenset(), {}).build().parts.values()


def _connect(one: _Probe, other: _Probe) -> None:
    one.others, other.others = [other], [one]
    one.outside = other.outside = False


def _lists(side: Side) -> Iterator[str]:
    """Yield the lists of patterns of a side, in words."""
    for name, lists in (("allow", side.allowed), ("deny", side.denied)):
        for way, patterns in (("", lists.both), (" in", lists.inward), (" out", lists.outward)):
            if patterns:
                yield f"{name}{way} {', '.join(map(text_of, patterns))}"


def _thinned(side: Side) -> Iterator[str]:
    """Yield what keeps frames out that pass all patterns, and what becomes of messages that are none."""
    if side.unchanged:
        yield f"unchanged ones stay out, but for one in {number(side.front.refresh_s or 0)} s"
    for one in side.limits:
        yield f"at most {number(one.frames_per_s)} a second of {text_of(one.pattern)} {one.direction}"
    if side.opaque is not None:
        yield f"opaque messages are {text_of(side.opaque)}"


def _gained(
    after: Mapping[str, Account], before: Mapping[str, Account], link: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the reasons for which a link has rejected, and for which it has dropped, since `before`."""
    now, then = after.get(link, Account()).stats, before.get(link, Account()).stats
    return gained(now.rejected, then.rejected), gained(now.dropped, then.dropped)
