"""A side of a bridge, on which a link is opened, and its ports: one for each pipe, with the policies."""

import logging
from collections.abc import Callable
from functools import partial

from bridges.admission import NO_FRAME, Admission
from bridges.forms import MixedBatch, leaving
from bridges.handover.entrance import IN_DOUBT
from bridges.holdoff import HoldOff
from bridges.inside import Inside
from bridges.judge import Verdicts
from bridges.policy import Policy
from bridges.rules import Rule, Rules, Seen, Source
from bus.announcements import ON_TRUNK
from bus.hub import Hub, Pipe, came_ns, chain, without
from bus.lateness import LATE, late_ms
from bus.ledger import Stats
from bus.patch import is_patch
from bus.replaying import passing_replayed
from bus.vacancy import Filter
from bus.wire.batch import LENGTH_BYTES, Batch, batch_of, payloads
from bus.wire.frame import is_frame

log = logging.getLogger("buscoupler.bridges")


class Side(Hub):
    """The hub that a link is opened on: translates between the link's medium and the bridge.

    `taps` are called with every batch that comes in here, before any rule. `ports` are the pipes as the
    bridge sees them. The accounts of the bridge include them and the pipes behind them; a side has none of
    its own. `stats` counts messages that come in by this side from no port: from the appliance itself, or
    from a detached pipe. `Bridge.side` makes one; `settle` follows whenever the rules have changed.
    """

    def __init__(self, bridge: Inside, name: str, policy: Policy, hold_needed: Callable[[], bool]) -> None:
        super().__init__(name)
        self.bridge = bridge
        self.stats = bridge.stats_of(name)
        self.hold: HoldOff | None = None
        self._warned = False
        self._hold_needed = hold_needed
        self._ports: dict[int, Port] = {}
        self._kept: list[Stats] = []
        self._links: list[str] = []  # that are open here, by their rows
        self.take(policy)

    def take(self, policy: Policy) -> None:
        """Take over a policy. Messages that are held back continue to wait."""
        self.policy, self.trunk, self.opaque, self.deaf = policy, policy.trunk, policy.opaque, policy.deaf
        self.replay_s, self.stops_in_doubt = policy.replay_s, policy.stops_in_doubt
        self.anew, self.late, self.answers = policy.anew, policy.late, policy.answers
        judge = policy.judge
        self._verdicts = None if judge is None else (Verdicts(judge.enters), Verdicts(judge.leaves))
        self._in = Rule([*policy.allow, *policy.allow_in], [*policy.deny, *policy.deny_in])
        self._out = Rule([*policy.allow, *policy.allow_out], [*policy.deny, *policy.deny_out])
        self._hold(policy.hold_s if policy.trunk else 0.0)

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
        self._lets_in_late = self.bridge.prompt_sides == (0 if self.late else 1)
        self._admission = self._admitting(self.bridge.seen, None)
        for port in self.ports:
            port.admission = self._admitting(port.keys, port.inner)
            port.settle()

    def _admitting(self, keys: Source | Seen, pipe: Pipe | None) -> Admission:
        """Return the admission rules for messages from one source of keys, a pipe or None."""
        origin, opaque, trunk = self.bridge.origin, self.opaque, self.trunk
        announced = partial(self._announced, pipe) if trunk and self.bridge.announced is not None else None
        return Admission(
            origin, self.inward, keys.add, opaque, trunk, keys.add_spent, keys.add_all, announced
        )

    def _announced(self, pipe: Pipe | None, message: bytes) -> str:
        """Take an announcement of a gateway, which is no message of the bus. Return why it is rejected."""
        assert self.bridge.announced is not None
        reason = self.bridge.announced(message, pipe)
        for stage in () if reason else (self,) if pipe is None else chain(pipe):
            stage.stats.unreceive(LENGTH_BYTES + len(message))
        return reason

    def _without_announcements(self, batch: Batch, admission: Admission, stats: Stats) -> Batch | None:
        """Take announcements out of a batch that is not to be admitted as it is."""
        kept = list[bytes]()
        for message in payloads(batch):
            if admission.announced is None or not message.startswith(ON_TRUNK):
                kept.append(message)
            elif reason := admission.announced(message):
                stats.reject(reason)
        return batch_of(kept)

    @property
    def plain(self) -> bool:
        """Whether every frame passes this side unchanged."""
        return not (self.trunk or self._in or self._out)

    @property
    def holds(self) -> bool:
        return self.bridge.holds

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
        port = self._ports[id(pipe)] = Port(self, pipe, keys, self._admitting(keys, pipe))
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

    def fold(self, link: str, stats: Stats) -> None:
        """Forget counts of `keep` that are final. They stay in the account of the bridge."""
        self._kept = [one for one in self._kept if one is not stats]
        self.bridge.fold(self.row(link), stats)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Admit messages of `origin`, and hand them to all other pipes of the bridge.

        For each port: received by its pipe = received by the port + rejected by it, in messages.
        """
        port = self._ports.get(id(origin))
        stats = self.stats if port is None else port.stats
        if origin is not None:
            (self if port is None else origin).stats.receive(batch)
        gate, admission = self.bridge.gate, self._admission if port is None else port.admission
        if admission.announced is not None and (self.taps or (gate is not None and not gate.forwarding)):
            rest = self._without_announcements(batch, admission, stats) if ON_TRUNK in batch.keep() else batch
            if rest is None:
                return
            batch = rest
        for tap in self.taps:
            tap(batch, origin)
        if self.bridge.cuts and port is not None and self.bridge.bars(port, batch):
            return
        if self.hold is not None:
            self.hold.hear(batch)
        if gate is not None and late_ms() and not self._lets_in_late:  # a takeover would send it anywhere
            return stats.reject(LATE, batch.count)
        entering = batch if gate is None else gate.enter(self.number, batch, stats, came_ns(origin))
        admitted = None if entering is None else self.bridge.admit(entering, admission, stats)
        if self._watches and not self._warned and NO_FRAME in stats.rejected:
            self.warn()
        if admitted is not None:
            self.bridge.publish(admitted, port)

    def enter_again(self, batch: Batch, stats: Stats) -> None:
        """Admit what the entrance kept back of the pipe with this ledger, and hand it to all other pipes."""
        port = self._port_of(stats)
        admitted = self.bridge.admit(batch, self._admission if port is None else port.admission, stats)
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
                "(`buscoupler send`, Bus.send or docs/wire/frame.md make frames; `opaque: PATTERN` at the "
                "side of a bus makes one of each message that comes in there)"
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

    @property
    def is_recorded(self) -> bool:
        """Whether somebody records what came in here while the bridge stood by."""
        return bool(self.bridge.came_taps)

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
            with passing_replayed():
                port.send(batch, since_s)

    def withhold(self, count: int) -> None:
        """Count frames that were due here at a takeover, and are too old to be sent, as `stale`."""
        self.stats.offered += count
        self.stats.drop("stale", count)

    def say(self, batch: Batch) -> None:
        """Say to all other sides what became of commands before a takeover."""
        if (admitted := self.bridge.admit(batch, self._admission, self.stats)) is not None:
            self.bridge.publish(admitted)

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages, counted by `reason`; return them, those in pipes first."""
        messages = [message for port in self.ports for message in port.inner.purge(reason)]
        return messages if self.hold is None else messages + self.hold.purge(reason)


class Port(Pipe):
    """A pipe as the bridge sees it. Its ledger: offered by the bridge = handed to the pipe + dropped.

    `keys` are those of the messages that it brought, and `admission` are the rules for these messages.
    """

    __slots__ = ("_is_prompt", "admission", "inner", "is_watched", "keys", "link", "name", "side", "stats")

    inner: Pipe

    def __init__(self, side: Side, pipe: Pipe, keys: Source, admission: Admission) -> None:
        self.keys, self.admission = keys, admission
        self.name = f"{side.bridge.name}/{side.name}/{pipe.name}"
        self.link = side.row(pipe.link)
        self.inner = pipe
        self.is_watched = is_patch(pipe)  # to a bus, which looks at all: each ring through patches has one
        self.stats = Stats()
        self.side = side
        self.settle()

    def settle(self) -> None:
        """Do as the present policy of the side says."""
        self._is_prompt = not (self.side.late or self.inner.takes_late)

    def send(self, batch: Batch, since_s: float | None = None) -> None:
        """Send the messages that the side lets out.

        `since_s`: since when they have waited, if not from now.
        """
        self.stats.offered += batch.count
        side = self.side
        bridge = side.bridge
        if self._is_prompt and late_ms():
            return self._drop_late(batch)
        out: Batch | None = batch
        if not bridge.simple or isinstance(batch, MixedBatch):
            out = leaving(batch, side.trunk, side.lets_out_opaque, side.outward, self.stats)
            if not side.lets_out_opaque and NO_FRAME in self.stats.dropped:
                side.warn()
        if out is None:
            return
        if self.inner.answers:
            self._ask(out)
        if side.hold is not None and side.hold.wanted():
            return side.hold.put(self.stats, self.hand_on, out, since_s)
        if bridge.gate is not None and (bridge.is_late or bridge.gate.lapsed()):
            bridge.gate.owe(side.number, list(payloads(out)), not bridge.is_late)
            self.stats.drop("fenced", out.count)
            return self._turn_away(out, "fenced")
        if side.stops_in_doubt and bridge.gate is not None and bridge.gate.in_doubt():
            return self.stats.drop(IN_DOUBT, out.count)
        self.hand_on(out)

    def _drop_late(self, batch: Batch) -> None:
        side = self.side
        self.stats.drop(LATE, batch.count)
        if not self.inner.answers:
            return
        out = leaving(batch, side.trunk, side.lets_out_opaque, side.outward, Stats())
        if out is not None:
            self._ask(out)
            self._turn_away(out, LATE)

    def _ask(self, batch: Batch) -> None:
        """Have the entrance note the commands that a device here tells the result of."""
        if self.inner.answers and self.side.bridge.gate is not None:
            self.side.bridge.gate.ask(self.side.number, batch)

    def _turn_away(self, batch: Batch, reason: str) -> None:
        """Have a device tell what became of commands that do not come to it."""
        if self.inner.answers:
            self.inner.turn_away(payloads(batch), reason)

    def hand_on(self, batch: Batch) -> None:
        """Send messages that have passed all policies to the pipe, and count them as sent."""
        self.stats.sent += batch.count
        self.stats.sent_bytes += batch.size
        for tap in self.side.bridge.sent_taps:
            tap(batch, self)
        self.inner.send(batch)

    def close(self) -> None:
        self.inner.close()
