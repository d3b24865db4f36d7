"""The bridge: a hub whose links are attached through sides, with policies per pipe (ARCHITECTURE.md).

Where no side is a trunk, plain frames travel between its sides; where one is, every message inside has an
envelope (`bridges/forms.py`).
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from bridges.admission import NO_FRAME, Admission
from bridges.forms import MixedBatch, leaving
from bridges.forms import without as without_numbers
from bridges.handover.entrance import ALONE, Entrance, Rank
from bridges.handover.gate import IN_DOUBT, Gate, never
from bridges.handover.parallel import Parallel
from bridges.handover.window import AGE_S
from bridges.holdoff import HoldOff
from bridges.ingress import admit_bare, admit_stamped, only_frames
from bridges.judge import Verdicts
from bridges.policy import PASS_ALL, Policy
from bridges.rules import Rule, Rules, Seen, Source
from bus.hub import Hub, Pipe, Tap, chain, without
from bus.ledger import Stats
from bus.vacancy import Filter
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import first_sequence
from bus.wire.frame import is_frame
from bus.wire.pattern import Pattern

log = logging.getLogger("buscoupler.bridges")

_U32 = 0xFFFFFFFF
CameTap = Callable[[Batch, str], None]
"""A tap of a batch that came in by a side, by its name, while the bridge stood by."""


def always() -> bool:
    """Return True: the bridge has no gate."""
    return True


class Bridge(WatchedHub):
    """A hub that carries frames that match `pattern` between its sides.

    `origin` (u32) is this appliance in envelopes: messages that come back with it are dropped. `clock` gives
    seconds, monotonic. `sequence` is the first sequence number stamped; where it is not given, it comes from
    the time of day, so that a restart does not repeat keys that other appliances still remember.
    """

    def __init__(
        self,
        name: str,
        origin: int,
        pattern: Iterable[int | str] = (),
        clock: Callable[[], float] = time.monotonic,
        sequence: int | None = None,
    ) -> None:
        super().__init__(name, clock)
        if not 0 <= origin <= _U32:
            raise ValueError(f"bridge {name}: origin must be 0 to {_U32}, not {origin}")
        self.origin = origin
        self.core_rule = Rule([Pattern(*pattern)])
        self.seen = Seen()
        self.sequence = first_sequence(time.time()) if sequence is None else sequence & _U32
        self.sides: tuple[Side, ...] = ()
        self._of_sides: dict[str, Stats] = {}
        self.gate: Entrance | None = None
        """The entrance of a bridge that several gateways run; None where no other gateway runs it."""
        self.is_late = False
        """Whether what is passed on came in while this gateway might forward, and it may no more."""
        self.simple = not self.core_rule
        """Whether there are plain sides only and no filter: frames pass as they came, a batch at a time."""
        self.stamps = False
        """Whether some side is a trunk: frames that enter without an envelope are given one."""
        self.sent_taps: tuple[Tap, ...] = ()
        """Taps that see every batch a port hands to its pipe, after all policies."""
        self.came_taps: tuple[CameTap, ...] = ()
        """Taps that see what came in while the bridge stood by and goes out at a takeover, with the side."""

    def side(self, name: str, policy: Policy = PASS_ALL, hold_needed: Callable[[], bool] = always) -> "Side":
        """Make a side, to open a link or join a hub on. Only a side with `policy.trunk` sends envelopes.

        Sides may come, go and change at any time between two batches. `hold_needed()` tells whether another
        appliance is on the trunk, so that this one should hold messages back for `policy.hold_s`.
        """
        made = Side(self, len(self.sides), name, policy, hold_needed)
        self.sides += (made,)
        self.settle()
        return made

    def stats_of(self, side: str) -> Stats:
        """Return the counts of messages that come in by a side from no port; they outlive the side."""
        if side not in self._of_sides:
            self.keep(side, self._of_sides.setdefault(side, Stats()))
        return self._of_sides[side]

    def remove(self, side: "Side") -> None:
        """Forget a side whose links are closed. It is no error if it is not there."""
        self.sides = tuple(other for other in self.sides if other is not side)
        self.settle()

    def revise(self, origin: int, pattern: Iterable[int | str]) -> None:
        """Carry only frames that match `pattern` from now on, and stamp with `origin`."""
        self.origin, self.core_rule = origin, Rule([Pattern(*pattern)])
        self.settle()

    def settle(self) -> None:
        """Make all sides judge by the present rules, from the next batch on."""
        self.simple = not self.core_rule and all(side.plain for side in self.sides)
        self.stamps = any(side.trunk for side in self.sides)
        for number, side in enumerate(self.sides):
            side.settle(number)
        if self.gate is not None:
            self.gate.revise(self.sides)

    def stand_by(
        self,
        may_forward: Callable[[float], bool],
        on_lapse: Callable[[], None] = lambda: None,
        age_s: float = AGE_S,
        rank: Rank = ALONE,
        in_doubt: Callable[[], bool] = never,
    ) -> Gate:
        """Forward nothing until the returned gate is told to `resume`. An earlier gate is forgotten.

        For a bridge that several gateways run; the arguments are those of `Gate`.
        """
        rest = on_lapse, age_s, rank, in_doubt
        gate = Gate(self.sides, self.origin, self.seen, self.clock, may_forward, *rest)
        self.gate = gate
        return gate

    def forward_beside_others(self, rank: Rank) -> Parallel:
        """Forward, as all other candidates do at the same time, with the stamps that they share."""
        parallel = Parallel(self.sides, self.origin, self.clock, rank)
        self.gate = parallel
        return parallel

    def without_numbers(self, batch: Batch, gone: Sequence[int]) -> Batch | None:
        """Return `batch`, as it is inside this bridge, without some messages; None if none are left."""
        if len(gone) == batch.count:
            return None
        rest = without_numbers(batch, gone)
        return batch.keeping(rest, gone) if isinstance(batch, MixedBatch) else rest

    def owned(self, batch: Batch) -> Batch:
        """Return a batch that stays as it is when its decoder reads on."""
        whole = super().owned(batch)
        return batch.keeping(whole, ()) if isinstance(batch, MixedBatch) else whole

    def pass_on(self, batch: Batch, origin: Pipe | None) -> None:
        """Send a batch to all pipes but its own, unless it waited and another gateway forwards now."""
        self.is_late = self.gate is not None and not self.gate.forwarding and origin is not None
        super().pass_on(batch, origin)
        self.is_late = False

    def own_batch(self, message: bytes) -> Batch:
        """Return a message of our own in the form that it has inside the bridge.

        Thus a canary has our envelope on trunks: a ring of trunks alone does not bring it back as new.
        """
        batch = from_payloads([message])
        if not self.stamps:
            return batch if is_frame(message) else MixedBatch(batch.keep(), 1, (0,))
        everything = Admission(self.origin, Rules(), lambda _: True, opaque=True)
        stamped, self.sequence = admit_stamped(batch, everything, self.sequence, Stats())
        return batch if stamped is None else stamped

    def is_guest(self, pipe: Pipe) -> bool:
        """Tell whether anybody may be at the other end; at a trunk there are appliances."""
        return super().is_guest(pipe) and not (isinstance(pipe, Port) and pipe.side.trunk)

    def stand_alone(self) -> None:
        """Forward without asking, as no other gateway runs this bridge."""
        self.gate = None

    def tap_came(self, tap: CameTap) -> None:
        """Call `tap` at each takeover with what came in while the bridge stood by, and goes out now."""
        self.came_taps += (tap,)

    def untap_came(self, tap: CameTap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.came_taps = tuple(other for other in self.came_taps if other is not tap)

    def tap_sent(self, tap: Tap) -> None:
        """Call `tap` with every batch that a port hands to its pipe from now on."""
        self.sent_taps += (tap,)

    def untap_sent(self, tap: Tap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.sent_taps = tuple(other for other in self.sent_taps if other is not tap)


class Side(Hub):
    """The hub that a link is opened on: translates between the link's medium and the bridge.

    `taps` are called with every batch that comes in here, before any rule. `ports` are the pipes as the
    bridge sees them. The accounts of the bridge include them and the pipes behind them; a side has none of
    its own. `stats` counts messages that come in by this side from no port: from the appliance itself, or
    from a detached pipe.
    """

    def __init__(
        self, bridge: Bridge, number: int, name: str, policy: Policy, hold_needed: Callable[[], bool]
    ) -> None:
        super().__init__(name)
        self.bridge = bridge
        self.stats = bridge.stats_of(name)
        self.hold: HoldOff | None = None
        self._warned = False
        self._hold_needed = hold_needed
        self._ports: dict[int, Port] = {}
        self._kept: list[Stats] = []
        self._links: list[str] = []  # that are open here, by their rows
        self.revise(policy, number)

    def revise(self, policy: Policy, number: int | None = None) -> None:
        """Judge by another policy from the next batch on. Messages that are held back continue to wait."""
        self.policy, self.trunk, self.opaque, self.deaf = policy, policy.trunk, policy.opaque, policy.deaf
        self.replay_s, self.stops_in_doubt = policy.replay_s, policy.stops_in_doubt
        self.anew = policy.anew
        judge = policy.judge
        self._verdicts = None if judge is None else (Verdicts(judge.enters), Verdicts(judge.leaves))
        self._in = Rule([*policy.allow, *policy.allow_in], [*policy.deny, *policy.deny_in])
        self._out = Rule([*policy.allow, *policy.allow_out], [*policy.deny, *policy.deny_out])
        self._hold(policy.hold_s if policy.trunk else 0.0)
        if number is None:
            self.bridge.settle()
        else:
            self.settle(number)

    def _hold(self, hold_s: float) -> None:
        if self.hold is not None and hold_s:
            return self.hold.revise(hold_s)
        if self.hold is not None:
            self.hold.release()
        self.hold = HoldOff(hold_s, self.bridge.clock, self._needs_hold) if hold_s else None

    def _needs_hold(self) -> bool:
        return self.policy.hold_always or self._hold_needed()

    def settle(self, number: int) -> None:
        """Become side `number` of the bridge, and join this side's rules with those of the bridge."""
        self.number = number
        self.inward, self.outward = Rules(self.bridge.core_rule, self._in), Rules(self._out)
        self.lets_out_opaque = self.opaque and self.outward.opaque
        self._watches = self.opaque and not self.inward.opaque
        self._admission = self._admitting(self.bridge.seen)
        for port in self.ports:
            port.admission = self._admitting(port.keys)

    def _admitting(self, keys: Source | Seen) -> Admission:
        """Return the admission rules for messages from one source of keys."""
        origin, opaque, trunk = self.bridge.origin, self.opaque, self.trunk
        return Admission(origin, self.inward, keys.add, opaque, trunk, keys.add_spent)

    @property
    def plain(self) -> bool:
        """Whether every frame passes this side unchanged."""
        return not (self.trunk or self._in or self._out)

    @property
    def ports(self) -> "tuple[Port, ...]":
        """The ports of this side, one for each attached pipe, in order."""
        return tuple(self._ports.values())

    @property
    def queued(self) -> int:
        """The number of messages that wait in pipes, are held back, or are copies behind such a message."""
        behind = sum(stats.queued for stats in self._kept)
        return behind + sum(stage.stats.queued for port in self.ports for stage in chain(port))

    def attach(self, pipe: Pipe) -> None:
        """Attach a port for `pipe` to the bridge."""
        self.pipes += (pipe,)
        keys = self.bridge.seen.source()
        port = self._ports[id(pipe)] = Port(self, pipe, keys, self._admitting(keys))
        self.bridge.attach(port)

    def detach(self, pipe: Pipe) -> None:
        """Detach the port of `pipe` from the bridge; no error if there is none."""
        self.pipes = without(self.pipes, pipe)
        port = self._ports.get(id(pipe))
        if port is not None:
            if self.hold is not None:
                self.hold.forget(port.stats)
            if self.bridge.gate is not None:
                self.bridge.gate.forget(port.stats)
            del self._ports[id(pipe)]
            self.bridge.seen.leave(port.keys)
            self.bridge.detach(port)

    def row(self, link: str) -> str:
        """Return the name of the account of a link among those of the bridge."""
        return f"{self.name}/{link}" if link else self.name

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        """Enlist a link at the bridge. Without a pipe it drops by `reason` only what this side lets out.

        `filter` sees what that is, and tells how much of it is left for the link.
        """
        self._links.append(self.row(link))
        self.bridge.enlist(self.row(link), reason, partial(self._missed, filter))

    def strike(self, link: str) -> None:
        if self.row(link) in self._links:
            self._links.remove(self.row(link))
            self.bridge.strike(self.row(link))

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts to an account of the bridge that are of no port."""
        self._kept.append(stats)
        self.bridge.keep(self.row(link), stats)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Admit messages of `origin`, and hand them to all other pipes of the bridge.

        For each port: received by its pipe = received by the port + rejected by it, in messages.
        """
        port = self._ports.get(id(origin))
        stats = self.stats if port is None else port.stats
        if origin is not None:
            (self if port is None else origin).stats.receive(batch)
        for tap in self.taps:
            tap(batch, origin)
        if self.bridge.cuts and port is not None and self.bridge.bars(port, batch):
            return
        if self.hold is not None:
            self.hold.hear(batch)
        gate = self.bridge.gate
        entering = batch if gate is None else gate.enter(self.number, batch, stats)
        admission = self._admission if port is None else port.admission
        admitted = None if entering is None else self._admit(entering, admission, stats)
        if self._watches and not self._warned and NO_FRAME in stats.rejected:
            self.warn()
        if admitted is not None:
            self.bridge.publish(admitted, port)

    def enter_again(self, batch: Batch, stats: Stats) -> None:
        """Admit what the entrance kept back of the pipe with this ledger, and hand it to all other pipes."""
        port = self._port_of(stats)
        admitted = self._admit(batch, self._admission if port is None else port.admission, stats)
        if admitted is not None:
            self.bridge.publish(admitted, port)

    def note_kept(self, stats: Stats, count: int) -> None:
        """Note that `count` messages more wait here of those that came in by the pipe with this ledger."""
        if (port := self._port_of(stats)) is not None:
            self.bridge.note_waiting(port, count)

    def _port_of(self, stats: Stats) -> "Port | None":
        return next((port for port in self.ports if port.stats is stats), None)

    def warn(self) -> None:
        """Log that messages do not pass here because they are no frames; once, however many there are."""
        if not self._warned:
            why = "a pattern takes frames only" if self.opaque else "this medium carries frames only"
            level = logging.INFO if self.opaque else logging.WARNING  # somebody asked for a pattern
            text = (
                "%s, side %s: dropped a message that is no TMQ frame, because %s; others are only counted "
                "(`buscoupler send`, Bus.send or docs/wire/frame.md make frames)"
            )
            log.log(level, text, self.bridge.name, self.name, why)
        self._warned = True

    def give(self, pipe: Pipe, batch: Batch) -> None:
        """Send a batch of bare frames to one pipe only, as far as this side lets them out."""
        port = self._ports[id(pipe)]
        self.bridge.give(port, batch)

    def admits(self, content: bytes) -> bool:
        """Tell whether a frame or an opaque message may enter here."""
        if not is_frame(content):
            return self.opaque and self.inward.opaque
        return self.inward.admit(content) and (self._verdicts is None or self._verdicts[0].admit(content))

    def lets_out(self, content: bytes) -> bool:
        """Tell whether a frame or an opaque message may leave here."""
        if not is_frame(content):
            return self.lets_out_opaque
        return self.outward.admit(content) and (self._verdicts is None or self._verdicts[1].admit(content))

    def keeps_unsent(self) -> bool:
        """Tell whether an unsent message may be sent later.

        It may not if there are several peers without keys, some of which may have it.
        """
        return self.trunk or len(self._ports) == 1

    def _admit(self, batch: Batch, admission: Admission, stats: Stats) -> Batch | None:
        """Return the messages of a batch that the rules let in, in the form for inside the bridge."""
        bridge = self.bridge
        if bridge.simple and only_frames(batch):
            return batch
        bridge.seen.advance(bridge.clock())
        if not bridge.stamps:
            return admit_bare(batch, admission, stats)
        key_of = None if bridge.gate is None else bridge.gate.key_of
        admitted, bridge.sequence = admit_stamped(batch, admission, bridge.sequence, stats, key_of)
        return admitted

    def came(self, batch: Batch) -> None:
        """Show a batch that came in here while the bridge stood by to the bridge's taps for that."""
        for tap in self.bridge.came_taps:
            tap(batch, self.name)

    def _missed(self, filter: Filter | None, batch: Batch, stats: Stats) -> int:
        """Return how many messages a link without a pipe misses here; count those that no pipe would get."""
        out = leaving(batch, self.trunk, self.lets_out_opaque, self.outward, stats)
        if not self.lets_out_opaque and NO_FRAME in stats.dropped:
            self.warn()
        if out is None or filter is None:
            return 0 if out is None else out.count
        return filter(out, stats)

    def replay(self, batch: Batch, since_s: float | None) -> None:
        """Send `batch` to all ports; where messages are held back, these have waited since `since_s`."""
        for link in self._links:
            self.bridge.miss(link, batch)
        for port in self.ports:
            self.bridge.lend(port, batch.count)
            port.send(batch, since_s)

    def withhold(self, count: int) -> None:
        """Count frames that were due here at a takeover, and are too old to be sent, as `stale`."""
        self.stats.offered += count
        self.stats.drop("stale", count)

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages, counted by `reason`; return them, those in pipes first."""
        messages = [message for port in self.ports for message in port.inner.purge(reason)]
        return messages if self.hold is None else messages + self.hold.purge(reason)


class Port(Pipe):
    """A pipe as the bridge sees it. Its ledger: offered by the bridge = handed to the pipe + dropped.

    `keys` are those of the messages that it brought, and `admission` are the rules for these messages.
    """

    __slots__ = ("admission", "inner", "keys", "link", "name", "side", "stats")

    inner: Pipe

    def __init__(self, side: Side, pipe: Pipe, keys: Source, admission: Admission) -> None:
        self.keys, self.admission = keys, admission
        self.name = f"{side.bridge.name}/{side.name}/{pipe.name}"
        self.link = side.row(pipe.link)
        self.inner = pipe
        self.stats = Stats()
        self.side = side

    def send(self, batch: Batch, since_s: float | None = None) -> None:
        """Send the messages that the side lets out.

        `since_s`: since when they have waited, if not from now.
        """
        self.stats.offered += batch.count
        side = self.side
        bridge = side.bridge
        out: Batch | None = batch
        if type(batch) is not Batch or not bridge.simple:
            out = leaving(batch, side.trunk, side.lets_out_opaque, side.outward, self.stats)
            if not side.lets_out_opaque and NO_FRAME in self.stats.dropped:
                side.warn()
        if out is None:
            return
        if side.hold is not None and side.hold.wanted():
            return side.hold.put(self.stats, self.hand_on, out, since_s)
        if bridge.gate is not None and (bridge.is_late or bridge.gate.lapsed()):
            bridge.gate.owe(side.number, list(payloads(out)), not bridge.is_late)
            return self.stats.drop("fenced", out.count)
        if side.stops_in_doubt and bridge.gate is not None and bridge.gate.in_doubt():
            return self.stats.drop(IN_DOUBT, out.count)
        self.hand_on(out)

    def hand_on(self, batch: Batch) -> None:
        """Send messages that have passed all policies to the pipe, and count them as sent."""
        self.stats.sent += batch.count
        self.stats.sent_bytes += len(batch.data)
        for tap in self.side.bridge.sent_taps:
            tap(batch, self)
        self.inner.send(batch)

    def close(self) -> None:
        self.inner.close()
