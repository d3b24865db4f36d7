"""A hub that finds loops of plain links, names the pipe that carries one, and cuts it for a while."""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import uniform

from bus.hub import Hub, Pipe
from bus.loops import CANARY_S, LoopWatch
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, is_enveloped

log = logging.getLogger("buscoupler.bus")

HOLD_DOWN_S = 10.0  # a cut pipe is tried again after this; twice as long each time the loop is still there
HOLD_DOWN_MAX_S = 640.0
_NONCE_BYTES = 12
_SPREAD = 1.0, 1.5  # of two who cut one ring the first finds it open; the second finds the loop, and stays


@dataclass(slots=True)
class Cut:
    """A pipe that carries a loop. Nothing passes until a canary sent after `until_s` does not come back."""

    pipe: Pipe
    like: bytes
    until_s: float
    hold_down_s: float = HOLD_DOWN_S
    probed_s: float | None = None


class WatchedHub(Hub):
    """A `Hub` with a `LoopWatch`. Through a cut pipe nothing passes: counted by the reason `loop`.

    `clock` gives seconds, monotonic. `cuts` are the pipes that are cut now; `loops` counts the cuts made.
    """

    __slots__ = ("clock", "cuts", "loops", "watch")

    def __init__(self, name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name)
        self.clock = clock
        self.watch = LoopWatch(uniform, partial(secrets.token_bytes, _NONCE_BYTES))
        self.loops = 0
        self.cuts: tuple[Cut, ...] = ()

    def detach(self, pipe: Pipe) -> None:
        """Forget a pipe, cut or not."""
        super().detach(pipe)
        self.cuts = tuple(cut for cut in self.cuts if cut.pipe is not pipe)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Hand `batch` on as a `Hub` does, unless it goes round a loop."""
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
        for cut in self.cuts:
            cut.pipe.stats.offered += batch.count
            cut.pipe.stats.drop("loop", batch.count)
        return super().publish(batch, origin)

    def _let_by(self, batch: Batch, origin: Pipe, now: float) -> Batch | None:
        """Return the part of `batch` that may go on, without what seems to go round; None if nothing may."""
        watch, suspect = self.watch, self.watch.suspect
        if suspect is not None and watch.came_back(batch.data):
            self._cut(origin, suspect, now)
            return None
        if self.cuts and any(cut.pipe is origin for cut in self.cuts):
            return None
        first = _first(batch.data)
        held = watch.look(first, origin, now, _copies(batch, first) if batch.count > 1 else 1)
        if watch.suspect is not None and (canary := watch.canary(now)):
            super().publish(from_payloads([canary]))
        if not held:
            return batch
        # a bridge's own kind of batch knows more than its bytes tell, so it stays as a whole
        return _without(batch, bytes(first)) if type(batch) is Batch else None

    def _cut(self, pipe: Pipe, like: bytes, now: float) -> None:
        """Cut the pipe by which a canary came back. If that canary probed a cut pipe, cut that one longer."""
        probed = next((cut for cut in self.cuts if cut.probed_s is not None), None)
        if probed is None:
            super().detach(pipe)
            self.cuts += (probed := Cut(pipe, like, now + HOLD_DOWN_S * uniform(*_SPREAD)),)
        else:
            probed.hold_down_s = min(2 * probed.hold_down_s, HOLD_DOWN_MAX_S)
            probed.until_s, probed.probed_s = now + probed.hold_down_s * uniform(*_SPREAD), None
        self.loops += 1
        log.error("%s: loop: what was sent came back by %s", self.name, pipe.name)
        log.error("%s: %s is cut for %g s", self.name, probed.pipe.name, probed.hold_down_s)

    def _review(self, now: float) -> None:
        """Probe each cut pipe after its time, one at a time, and open those without a loop."""
        for cut in self.cuts:
            if cut.probed_s is not None and now - cut.probed_s > CANARY_S:
                self.cuts = tuple(other for other in self.cuts if other is not cut)
                self.watch.drop()
                log.warning("%s: %s is open again: the loop has gone", self.name, cut.pipe.name)
                super().attach(cut.pipe)
            elif cut.probed_s is None and now >= cut.until_s and self.watch.suspect is None:
                cut.probed_s = now
                super().publish(from_payloads([self.watch.probe(cut.like, now)]))
        self.watch.expire(now)  # a suspicion that died of itself must not keep a pipe cut


def _first(data: Buffer) -> Buffer:
    """Return the first message of a batch, without its envelope, which is new in every lap."""
    length = LENGTH.unpack_from(data)[0]
    start = LENGTH_BYTES
    if is_enveloped(data, start, start + length):
        start += ENVELOPE_BYTES
    return memoryview(data)[start : LENGTH_BYTES + length]


def _copies(batch: Batch, first: Buffer) -> int:
    """Return how often `first` is in `batch`: if the last message is equal, so are all; else count one."""
    return batch.count if batch.data[-len(first) :] == first else 1


def _without(batch: Batch, frame: bytes) -> Batch | None:
    """Return the messages of `batch` that are not `frame`, in an envelope or bare."""
    rest = [message for message in payloads(batch) if not message.endswith(frame)]
    return from_payloads(rest) if rest else None
