"""A hub that detects loops of plain links, reports the pipe that carries a loop, and cuts it for a while."""

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from random import uniform

from bus.hub import Hub, Pipe, chain, without
from bus.loops import CANARY_S, NONCE_BYTES, QUARANTINE, LoopWatch
from bus.rings import HOLD_DOWN_MAX_S, Cut, PipeHistory, Ring, closing
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

log = logging.getLogger("buscoupler.bus")

_SPREAD = 1.0, 1.5  # if two hubs cut one ring, the first to probe reopens it; the other stays cut
_arrivals = count()


class WatchedHub(Hub):
    """A `Hub` with a `LoopWatch`. Nothing passes a cut pipe; its messages are counted as `loop`.

    `clock` returns monotonic seconds. `cuts` are the pipes that are cut now; `loops` counts the cuts made.
    """

    __slots__ = ("_histories", "clock", "cuts", "loops", "watch")

    def __init__(self, name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name)
        self.clock = clock
        self.watch = LoopWatch[Pipe](uniform, partial(secrets.token_bytes, NONCE_BYTES))
        self.loops = 0
        self.cuts: tuple[Cut, ...] = ()
        self._histories: dict[Pipe, PipeHistory] = {}

    def attach(self, pipe: Pipe) -> None:
        super().attach(pipe)
        self._histories[pipe] = PipeHistory(next(_arrivals))

    def inherit(self, old: Hub, rename: Callable[[str], str]) -> None:
        """Continue the counts of another hub; look for loops anew."""
        super().inherit(old, rename)
        self.loops = old.loops if isinstance(old, WatchedHub) else 0

    def detach(self, pipe: Pipe) -> None:
        """Remove a pipe, even if it is cut."""
        super().detach(pipe)
        self._histories.pop(pipe, None)
        self.cuts = tuple(cut for cut in self.cuts if cut.pipe is not pipe)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Send `batch` as a `Hub` does, except messages that go round a loop."""
        if origin is not None and batch.count:
            now = self.clock()
            if self.cuts:
                self._review(now)
            kept = self._let_by(batch, origin, now)
            if kept is not batch:
                origin.stats.reject("loop", batch.count - (kept.count if kept else 0))
            if kept is None:
                return None
            batch = kept
        if self.cuts:
            self._drop_at_cuts(batch.count)
        return super().publish(batch, origin)

    def _drop_at_cuts(self, count: int) -> None:
        for cut in self.cuts:
            cut.pipe.stats.offered += count
            cut.pipe.stats.drop("loop", count)

    def _ask(self, pipes: Sequence[Pipe], canaries: Iterable[bytes]) -> None:
        """Send each pipe its own canary."""
        for pipe, canary in zip(pipes, canaries, strict=True):
            self.give(pipe, self.own_batch(canary))

    def without_messages(self, batch: Batch, is_out: Callable[[bytes], bool]) -> Batch | None:
        """Return `batch`, as it is inside this hub, without some messages; None if none are left."""
        rest = [message for message in payloads(batch) if not is_out(message)]
        return from_payloads(rest) if rest else None

    def own_batch(self, message: bytes) -> Batch:
        """Return a message of our own in the form in which this hub sends it."""
        return from_payloads([message])

    def bars(self, pipe: Pipe, batch: Batch) -> bool:
        """Tell whether a pipe is cut, so that nothing comes in by it; count that, and judge canaries in it.

        Call it before the keys of messages are remembered: on a ring of trunks, they come by another way as
        well.
        """
        now = self.clock()
        self._review(now)
        if all(cut.pipe is not pipe for cut in self.cuts):
            return False
        if self.watch.alert:
            self._heed(bytes(batch.data), pipe, now)
        pipe.stats.reject("loop", batch.count)
        return True

    def _let_by(self, batch: Batch, origin: Pipe, now: float) -> Batch | None:
        """Return `batch` without the messages that seem to go round a loop; None if none are left."""
        watch = self.watch
        kept = self._without_canaries(batch, origin, now) if watch.alert else batch
        if kept is None or (self.cuts and any(cut.pipe is origin for cut in self.cuts)):
            return None
        first = _first(kept.data)
        held = watch.look(first, origin, now, _copies(kept, first) if kept.count > 1 else 1)
        if watch.suspect is not None and (canaries := watch.canaries(self.pipes, now)):
            self._ask(self.pipes, canaries)
        return self.without_messages(kept, partial(_is, content=bytes(first))) if held else kept

    def _without_canaries(self, batch: Batch, origin: Pipe, now: float) -> Batch | None:
        """Take out canaries of ours that came back, and judge what they prove."""
        if not self._heed(bytes(batch.data), origin, now):
            return batch
        return self.without_messages(batch, self.watch.is_ours)

    def _heed(self, data: bytes, origin: Pipe, now: float) -> bool:
        """Judge what the canaries of ours that came back in `data` prove. Return whether there are any."""
        watch = self.watch
        watch.expire(now)
        ours, out = watch.is_ours(data), watch.left_by(data)
        if out is not None:
            self._judge(Ring(out, origin), now)
        return ours

    def _judge(self, ring: Ring, now: float) -> None:
        """Cut a pipe of a ring that a canary has proved, or keep the pipe cut that is being probed."""
        probed = next((cut for cut in self.cuts if cut.probed_s is not None), None)
        if probed is not None:
            if probed.is_in(ring):
                self._extend(probed, ring, now)
            return
        if ring.out not in self.pipes or ring.back not in self.pipes:
            return  # it is open already
        if ring.is_echo and self.watch.copies < QUARANTINE:
            return  # somebody out there can do that to any pipe, and few copies do no harm
        self._cut(closing(ring, self.is_guest, self._histories), ring, now)

    def is_guest(self, pipe: Pipe) -> bool:
        """Tell whether anybody may be at the other end: we choose the peers we dial, not those we accept."""
        return any(one.accepted for one in chain(pipe))

    def _cut(self, pipe: Pipe, ring: Ring, now: float) -> None:
        hold_down_s = self._histories[pipe].next_hold_down_s(now)
        like = self.watch.suspect
        assert like is not None
        self.pipes = without(self.pipes, pipe)
        cut = Cut(pipe, ring, like, now, hold_down_s)
        self.cuts += (cut,)
        self._hold(cut, ring, now)

    def _extend(self, cut: Cut, ring: Ring, now: float) -> None:
        cut.hold_down_s = min(2 * cut.hold_down_s, HOLD_DOWN_MAX_S)
        self._hold(cut, ring, now)

    def _hold(self, cut: Cut, ring: Ring, now: float) -> None:
        """Keep a pipe cut from now on, and say why."""
        cut.until_s, cut.probed_s = now + cut.hold_down_s * uniform(*_SPREAD), None
        self.watch.prove()
        self.loops += 1
        log.error("%s: loop: what left by %s came back by %s", self.name, ring.out.name, ring.back.name)
        log.error("%s: %s is cut for %g s", self.name, cut.pipe.name, cut.hold_down_s)

    def _review(self, now: float) -> None:
        """Probe the cut pipes whose pause is over, one at a time, and reopen those without a loop."""
        for cut in self.cuts:
            if cut.probed_s is not None and now - cut.probed_s > CANARY_S:
                self._open(cut, now)
            elif cut.probed_s is None and now >= cut.until_s and self.watch.suspect is None:
                cut.probed_s = now
                pipes = *self.pipes, cut.pipe
                self._ask(pipes, self.watch.probe(cut.like, pipes, now))
        self.watch.expire(now)  # an expired suspicion must not keep a pipe cut

    def _open(self, cut: Cut, now: float) -> None:
        self.cuts = tuple(other for other in self.cuts if other is not cut)
        self.watch.drop()
        log.info("%s: %s is open again: the loop has gone", self.name, cut.pipe.name)
        self.pipes += (cut.pipe,)
        history = self._histories[cut.pipe]
        history.hold_down_s, history.opened_s = cut.hold_down_s, now


def _first(data: Buffer) -> Buffer:
    """Return the first message of a batch without its envelope, which differs in every round of a loop."""
    length = LENGTH.unpack_from(data)[0]
    start = LENGTH_BYTES
    if is_enveloped(data, start, start + length):
        start += ENVELOPE_BYTES
    return memoryview(data)[start : LENGTH_BYTES + length]


def _copies(batch: Batch, first: Buffer) -> int:
    """Return how often `first` is in `batch`. If the last message is equal, assume that all are; else 1."""
    return batch.count if batch.data[-len(first) :] == first else 1


def _is(message: bytes, content: bytes) -> bool:
    if is_enveloped(message):
        return message[ENVELOPE_BYTES:] == content
    return message == content
