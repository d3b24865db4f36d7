"""A hub that detects loops of plain links, reports the pipe that carries a loop, and cuts it for a while."""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import uniform

from bus.hub import Hub, Pipe, without
from bus.loops import CANARY_S, LoopWatch
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

log = logging.getLogger("buscoupler.bus")

HOLD_DOWN_S = 10.0  # pause before a cut pipe is probed; it doubles each time the loop is still there
HOLD_DOWN_MAX_S = 640.0
_NONCE_BYTES = 12
_SPREAD = 1.0, 1.5  # if two hubs cut one ring, the first to probe reopens it; the other stays cut


@dataclass(slots=True)
class Cut:
    """A pipe that carries a loop. Nothing passes until a canary, sent after `until_s`, does not come back."""

    pipe: Pipe
    like: bytes
    until_s: float
    hold_down_s: float = HOLD_DOWN_S
    probed_s: float | None = None


class WatchedHub(Hub):
    """A `Hub` with a `LoopWatch`. Nothing passes a cut pipe; its messages are counted as `loop`.

    `clock` returns monotonic seconds. `cuts` are the pipes that are cut now; `loops` counts the cuts made.
    """

    __slots__ = ("clock", "cuts", "loops", "watch")

    def __init__(self, name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name)
        self.clock = clock
        self.watch = LoopWatch(uniform, partial(secrets.token_bytes, _NONCE_BYTES))
        self.loops = 0
        self.cuts: tuple[Cut, ...] = ()

    def inherit(self, old: Hub, rename: Callable[[str], str]) -> None:
        """Go on with the counts of another hub; loops are looked for anew."""
        super().inherit(old, rename)
        self.loops = old.loops if isinstance(old, WatchedHub) else 0

    def detach(self, pipe: Pipe) -> None:
        """Remove a pipe, even if it is cut."""
        super().detach(pipe)
        self.cuts = tuple(cut for cut in self.cuts if cut.pipe is not pipe)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Send `batch` as a `Hub` does, except what goes round a loop."""
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

    def _ask(self, canary: bytes) -> None:
        """Send a canary to every pipe that is not cut."""
        self._drop_at_cuts(1)
        super().publish(self.own_batch(canary))

    def own_batch(self, message: bytes) -> Batch:
        """Return a message of our own as this hub sends it."""
        return from_payloads([message])

    def _let_by(self, batch: Batch, origin: Pipe, now: float) -> Batch | None:
        """Return `batch` without the messages that seem to go round a loop; None if none are left."""
        watch, suspect = self.watch, self.watch.suspect
        if suspect is not None and watch.came_back(batch.data):
            self._cut(origin, suspect, now)
            return None
        if self.cuts and any(cut.pipe is origin for cut in self.cuts):
            return None
        first = _first(batch.data)
        held = watch.look(first, origin, now, _copies(batch, first) if batch.count > 1 else 1)
        if watch.suspect is not None and (canary := watch.canary(now)):
            self._ask(canary)
        if not held:
            return batch
        # a bridge's own type of batch holds more than bytes, so it cannot be split
        return _without(batch, bytes(first)) if type(batch) is Batch else None

    def _cut(self, pipe: Pipe, like: bytes, now: float) -> None:
        """Cut the pipe that a canary came back from. If it probed a cut pipe, keep that one cut longer."""
        probed = next((cut for cut in self.cuts if cut.probed_s is not None), None)
        if probed is None:
            self.pipes = without(self.pipes, pipe)
            self.cuts += (probed := Cut(pipe, like, now + HOLD_DOWN_S * uniform(*_SPREAD)),)
        else:
            probed.hold_down_s = min(2 * probed.hold_down_s, HOLD_DOWN_MAX_S)
            probed.until_s, probed.probed_s = now + probed.hold_down_s * uniform(*_SPREAD), None
        self.loops += 1
        log.error("%s: loop: what was sent came back by %s", self.name, pipe.name)
        log.error("%s: %s is cut for %g s", self.name, probed.pipe.name, probed.hold_down_s)

    def _review(self, now: float) -> None:
        """Probe the cut pipes whose pause is over, one at a time, and reopen those without a loop."""
        for cut in self.cuts:
            if cut.probed_s is not None and now - cut.probed_s > CANARY_S:
                self.cuts = tuple(other for other in self.cuts if other is not cut)
                self.watch.drop()
                log.info("%s: %s is open again: the loop has gone", self.name, cut.pipe.name)
                self.pipes += (cut.pipe,)
            elif cut.probed_s is None and now >= cut.until_s and self.watch.suspect is None:
                cut.probed_s = now
                self._ask(self.watch.probe(cut.like, now))
        self.watch.expire(now)  # an expired suspicion must not keep a pipe cut


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


def _without(batch: Batch, content: bytes) -> Batch | None:
    """Return `batch` without the messages that are `content`, bare or enveloped; None if none are left."""
    rest = [message for message in payloads(batch) if not _is(message, content)]
    return from_payloads(rest) if rest else None


def _is(message: bytes, content: bytes) -> bool:
    if is_enveloped(message):
        return message[ENVELOPE_BYTES:] == content
    return message == content
