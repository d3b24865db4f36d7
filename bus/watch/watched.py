"""A hub that detects loops of plain links, reports the pipe that carries a loop, and cuts it for a while."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice
from random import Random, SystemRandom

from bus.hub import Hub, Pipe, chain, without
from bus.watch.canaries import (
    CANARY_S,
    MARK,
    NONCE_BYTES,
    Canaries,
    Sent,
    crossed,
    has_crossed,
    is_canary,
    is_probe,
)
from bus.watch.cases import CallLater, Case, Timer
from bus.watch.loops import SAMPLE, Content, LoopWatch
from bus.watch.rings import ECHOES, HOLD_DOWN_MAX_S, Cut, PipeHistory, Ring, closing
from bus.watch.trials import STORM, Rules, Verdict
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, Frames, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

log = logging.getLogger("buscoupler.bus")

_SPREAD = 1.0, 1.5
_CHANCE = SystemRandom()
_arrivals = count()


def on_running_loop(delay_s: float, call: Callable[[], None]) -> Timer | None:
    """Make a call later on the running event loop. Without one, what is due is done with the next batch."""
    try:
        return asyncio.get_running_loop().call_later(delay_s, call)
    except RuntimeError:
        return None


class WatchedHub(Hub):
    """A `Hub` with a `LoopWatch`. Nothing passes a cut pipe; its messages are counted as `loop`.

    `clock` returns monotonic seconds, `call_later` makes a call some seconds later, and `chance` makes what
    nobody can guess. `cuts` are the pipes
    that are cut now; `loops` counts the cuts made. What `publish` may hold back for a moment, `let_go` sends.
    """

    __slots__ = (
        "_canaries",
        "_case",
        "_histories",
        "_is_idle",
        "_sees_rings",
        "call_later",
        "chance",
        "clock",
        "cuts",
        "loops",
        "watch",
    )

    def __init__(
        self,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
        call_later: CallLater = on_running_loop,
        chance: Random = _CHANCE,
    ) -> None:
        super().__init__(name)
        self.clock, self.call_later, self.chance = clock, call_later, chance
        self.watch = LoopWatch[Pipe](lambda low, high: self.chance.uniform(low, high))
        self.loops = 0
        self.cuts: tuple[Cut, ...] = ()
        self._canaries = Canaries[Pipe](lambda: self.chance.randbytes(NONCE_BYTES))
        self._case: Case | None = None
        self._is_idle = True
        self._histories: dict[Pipe, PipeHistory] = {}
        self._sees_rings = False

    def attach(self, pipe: Pipe) -> None:
        super().attach(pipe)
        self._histories[pipe] = PipeHistory(next(_arrivals))
        self._note_ways()

    def inherit(self, old: Hub, rename: Callable[[str], str]) -> None:
        """Continue the counts of another hub; look for loops anew."""
        if isinstance(old, WatchedHub):
            old.let_go()
            self.loops = old.loops
        super().inherit(old, rename)

    def detach(self, pipe: Pipe) -> None:
        """Remove a pipe, even if it is cut. What it brought goes on."""
        if self._case is not None:
            self._case.leave(pipe)
        super().detach(pipe)
        if self._histories.pop(pipe, None) is not None:
            self._note_ways()
        self.cuts = tuple(cut for cut in self.cuts if cut.pipe is not pipe)

    def _note_ways(self) -> None:
        """Note whether a ring may show here: not where one pipe leads on, to a hub that looks, or to none.

        Where several do, a ring that turns one way may show here alone.
        """
        ways = [*islice((pipe for pipe in self._histories if not pipe.is_leaf), 3)]  # of thousands
        self._sees_rings = len(ways) > 2 or sum(not pipe.is_watched for pipe in ways) > 1

    @property
    def holds(self) -> bool:
        return self._case is not None

    def let_go(self) -> None:
        """Forward all messages that are held back."""
        if self._case is not None:
            self._case.let_go("unknown")

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Send `batch` as a `Hub` does, but nothing through a cut pipe.

        Messages that seem to go round a ring wait while that is found out, for a bounded time.
        """
        if origin is None or not batch.count:
            return self.pass_on(batch, origin)
        if self._is_idle:
            if origin.is_watched or not self._sees_rings:
                return Hub.publish(self, batch, origin)
            suspect = self._look(batch, origin, self.clock())
            if suspect is None or not self._suspects(suspect, batch):
                return Hub.publish(self, batch, origin)  # not by super(): each frame comes this way
        return self._publish_on_watch(batch, origin, self.clock())

    def _look(self, batch: Batch, origin: Pipe, now: float) -> Content[Pipe] | None:
        """Count a batch. Return its content that is suspicious, if any."""
        first = _first(batch)
        if batch.count == 1:
            return self.watch.look(first, origin, now)
        copies = _copies(batch, first)
        found = self.watch.look(first, origin, now, copies)
        if found is None and copies == 1 and self.watch.is_busy:
            found = self.watch.look_on(map(_content, payloads(batch)[1:SAMPLE]), origin, now)
        return found

    def _publish_on_watch(self, batch: Batch, origin: Pipe, now: float) -> None:
        self._review(now)
        if self._case is not None:
            self._case.move()
        kept = self._without_canaries(batch, origin, now)
        if kept is None:
            return
        if self._is_cut(origin):
            return origin.stats.reject("loop", kept.count)
        if self._case is None:
            suspect = self._look(kept, origin, now)
            if suspect is not None:
                self._suspects(suspect, kept)
        if self._case is None or not self._case.holds(kept, origin):
            self.pass_on(kept, origin)

    def pass_on(self, batch: Batch, origin: Pipe | None) -> None:
        """Send a batch to all pipes but its own; a cut pipe counts it instead."""
        for cut in self.cuts:
            if cut.pipe is not origin:
                cut.pipe.stats.offered += batch.count
                cut.pipe.stats.drop("loop", batch.count)
        super().publish(batch, origin)

    def without_numbers(self, batch: Batch, gone: Sequence[int]) -> Batch | None:
        """Return `batch`, as it is inside this hub, without some messages; None if none are left."""
        out = set(gone)
        rest = [message for number, message in enumerate(payloads(batch)) if number not in out]
        return from_payloads(rest) if rest else None

    def owned(self, batch: Batch) -> Batch:
        """Return a batch that stays as it is when its decoder reads on."""
        return Batch(batch.keep(), batch.count)

    def own_batch(self, message: bytes) -> Batch:
        """Return a message of our own in the form in which this hub sends it."""
        return from_payloads([message])

    def is_guest(self, pipe: Pipe) -> bool:
        """Tell whether anybody may be at the other end: we choose the peers we dial, not those we accept."""
        return any(one.accepted for one in chain(pipe))

    def _suspects(self, content: Content[Pipe], batch: Batch) -> bool:
        """Open the case of a suspicious content of a batch. Return False if it cannot be in a ring."""
        message = next(one for one in map(_content, payloads(batch)) if self.watch.is_it(content, one))
        if is_canary(message):
            self._canaries.is_new(bytes(message), self.clock())
            self._settle()
            return True
        ways, now = [way for way in content.ways or {content.by} if not way.is_leaf], self.clock()
        several = len(self.cuts) + sum(not pipe.is_leaf for pipe in self.pipes) > 2
        if len(ways) < (1 if content.ways is None and several else 2):
            self.watch.ignore(content)
            return False
        rules = Rules(
            content.count,
            self.watch.span_s(content, now),
            self.watch.rates(content, now),
            strict=not several,
            again=several and self.watch.was_legal(content),
            is_one_way=content.ways is None,
            is_mesh=several and sum(number > 1 for number in (content.ways or {}).values()) > 2,
            tried=self.watch.was_tried(content),
            patience=self.chance.uniform(*_SPREAD),
        )
        self._case = Case(self, content, bytes(message), rules)
        self._settle()
        return True

    def end(self, case: Case, verdict: Verdict) -> None:
        """Close a case, of which nothing is held any more."""
        self._case = None
        if verdict == "proved":
            self.watch.prove(case.suspect, self.clock())
        else:
            self.watch.acquit(case.suspect, self.clock(), verdict == "legal", case.trial.asked)
        self._settle()

    def _settle(self) -> None:
        self._is_idle = not (self.cuts or self._case or self._canaries.alert)

    def others(self, ways: Sequence[Pipe]) -> Sequence[Pipe]:
        """Return the pipes that may be in a ring with one of these ways."""
        return [pipe for pipe in self.pipes if pipe not in ways and not pipe.is_leaf]

    def ask(self, like: bytes, ways: Sequence[Pipe]) -> None:
        """Send a canary that resembles a message by each of these ways."""
        now = self.clock()
        name = self._canaries.new_claim(now)
        for way in ways:
            self._send_canary(name, like, way, now)

    def _send_canary(self, name: bytes, like: bytes, way: Pipe, now: float) -> None:
        canary = self._canaries.make(name, like, way, now)
        self._settle()
        self.give(way, self.own_batch(canary))

    def _without_canaries(self, batch: Batch, origin: Pipe, now: float) -> Batch | None:
        """Take out canaries: judge ours, and let those of others go on without waiting."""
        if not (self._case or self.cuts or self._canaries.alert) or MARK not in batch.keep():
            return batch
        messages = payloads(batch)
        found = [number for number, message in enumerate(messages) if is_canary(message)]
        for number in found:
            others = [other for other in range(batch.count) if other != number]
            self._take_canary(messages[number], origin, now, partial(self.without_numbers, batch, others))
        return self.without_numbers(batch, found) if found else batch

    def _take_canary(
        self, canary: bytes, origin: Pipe, now: float, alone: Callable[[], Batch | None]
    ) -> None:
        """Judge a canary that came in; if it goes on, send it as it came (`alone`) or marked.

        It is marked where it may not cut: over a fresh cut, and past a hub whose own canary goes on.
        """
        if self._stops(canary, origin, now):
            return origin.stats.reject("canary")
        marked = self.own_batch(crossed(bytes(_content(canary))))
        as_it_came = None if self._is_cut(origin) or self._beats(canary, now) else alone()
        self.pass_on(marked if as_it_came is None else as_it_came, origin)
        for cut in self.cuts:
            if cut.pipe is not origin and cut.is_fresh(now) and not is_probe(canary):
                self.give(cut.pipe, marked)

    def _stops(self, canary: bytes, origin: Pipe, now: float) -> bool:
        """Tell whether a canary ends here: it is ours, it was here before, or its way is cut."""
        sent = self._canaries.find(canary)
        if sent is not None:
            self._heed(sent, origin, now, has_crossed(canary))
            return True
        cut = next((cut for cut in self.cuts if cut.pipe is origin), None)
        if cut is not None and (is_probe(canary) or not cut.is_fresh(now)):
            return True
        return not self._canaries.is_new(canary, now)

    def _beats(self, canary: bytes, now: float) -> bool:
        """Tell whether our claim goes on against the canary of another hub. If not, wait for that hub."""
        if is_probe(canary) or has_crossed(canary):
            return False
        if self._canaries.wins(canary):
            return True
        if self._case is not None:
            self._case.trial.give_way(now)
        return False

    def _heed(self, sent: Sent[Pipe], origin: Pipe, now: float, is_over_cut: bool) -> None:
        """Judge what a canary of ours that came back proves."""
        ring = Ring(sent.way, origin)
        if ring.is_echo and (sent.returns < ECHOES or is_over_cut):
            return  # somebody there says what it hears
        cut = next((cut for cut in self.cuts if cut.probe == sent.name), None)
        if cut is not None and cut.is_in(ring) and not is_over_cut:
            cut.hold_down_s = min(2 * cut.hold_down_s, HOLD_DOWN_MAX_S)
            self._keep_cut(cut, ring, now)
        is_open = ring.out in self.pipes and ring.back in self.pipes
        if ring.is_echo and (self._case is None or self._case.suspect.rate < STORM):
            return  # anybody who hears a canary can say it often
        if not is_open or now > sent.out_s + CANARY_S:
            return
        if is_over_cut or sent.name != self._canaries.claim:
            if self._case is not None and self._case.message == sent.like:
                self._case.prove()
        else:
            self._cut(closing(ring, self.is_guest, self._histories), ring, sent.like, now)

    def _cut(self, pipe: Pipe, ring: Ring, like: bytes, now: float) -> None:
        self._canaries.settle()
        self.pipes = without(self.pipes, pipe)
        cut = Cut(pipe, ring, like, now, self._histories[pipe].next_hold_down_s(now), now)
        self.cuts += (cut,)
        self._keep_cut(cut, ring, now)
        if self._case is not None:
            self._case.prove(pipe)
        else:
            self.watch.prove(None, now)
        self._settle()

    def _keep_cut(self, cut: Cut, ring: Ring, now: float) -> None:
        """Keep a pipe cut from now on, and say why."""
        cut.keep(now + cut.hold_down_s * self.chance.uniform(*_SPREAD))
        self.loops += 1
        log.error("%s: loop: what left by %s came back by %s", self.name, ring.out.name, ring.back.name)
        log.error("%s: %s is cut for %g s", self.name, cut.pipe.name, cut.hold_down_s)

    def _is_cut(self, pipe: Pipe) -> bool:
        return any(cut.pipe is pipe for cut in self.cuts)

    def bars(self, pipe: Pipe, batch: Batch) -> bool:
        """Tell whether a pipe is cut, so that nothing comes in by it; count that, and judge canaries in it.

        Call it before the keys of messages are remembered: on a ring of trunks, they come by another way as
        well.
        """
        now = self.clock()
        self._review(now)
        if not self._is_cut(pipe):
            return False
        kept = self._without_canaries(batch, pipe, now)
        pipe.stats.reject("loop", kept.count if kept else 0)
        return True

    def _review(self, now: float) -> None:
        """Try the cut pipes whose pause is over, and open those without a loop."""
        self._canaries.expire(now)
        for cut in self.cuts:
            if cut.is_over(now):
                self._open(cut, now)
            elif cut.is_probe_due(now):
                cut.tried(self._canaries.new_probe(), now)
                self._send_canary(cut.probe, cut.like, cut.pipe, now)
        self._settle()

    def _open(self, cut: Cut, now: float) -> None:
        self.cuts = tuple(other for other in self.cuts if other is not cut)
        log.info("%s: %s is open again: the loop has gone", self.name, cut.pipe.name)
        self.pipes += (cut.pipe,)
        history = self._histories[cut.pipe]
        history.hold_down_s, history.opened_s = cut.hold_down_s, now


def _content(message: Buffer) -> Buffer:
    """Return a message without its envelope, which differs in every round of a loop."""
    return memoryview(message)[ENVELOPE_BYTES:] if is_enveloped(message, 0, len(message)) else message


def _first(batch: Batch) -> Buffer:
    """Return the first message of a batch without its envelope."""
    if type(batch) is Frames:
        return batch.bodies[0]
    data, start = batch.data, LENGTH_BYTES
    stop = batch.size if batch.count == 1 else start + LENGTH.unpack_from(data)[0]
    if is_enveloped(data, start, stop):
        start += ENVELOPE_BYTES
    return (data if isinstance(data, memoryview) else memoryview(data))[start:stop]


def _copies(batch: Batch, first: Buffer) -> int:
    """Return how often `first` is in `batch`. If the last message is equal, assume that all are; else 1."""
    last = batch.bodies[-1] if type(batch) is Frames else batch.data[-len(first) :]
    return batch.count if last == first else 1
