"""The entrance of a bridge that several gateways run: open while this one may forward, a window while not."""

import secrets
from collections import Counter
from collections.abc import Callable, Collection
from itertools import groupby
from typing import TYPE_CHECKING

from bridges.crossing import Crossing, restamp
from bridges.handover.stamps import Stamps
from bridges.handover.window import AGE_S, Due, SideRules, Window
from bridges.rules import Rules
from bus.hub import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import split

if TYPE_CHECKING:
    from bridges.bridge import Bridge, Side

LATE_S = 0.25  # what the other had queued, on a slow line, may come out for so long after our turn began
_U32 = 0xFFFFFFFF


class Gate:
    """Put it on a bridge when all its sides are made: `bridge.gate = Gate(bridge, candidate.may_forward)`.

    `may_forward(now)` is asked for each batch before anything leaves, so that a process that was frozen
    looks at its lease first; `on_lapse()` is called when it says no. `deaf`: names of sides where a standby
    does not hear what the active bridge sends. `age_s`: how long the window keeps a frame.
    """

    def __init__(
        self,
        bridge: "Bridge",
        may_forward: Callable[[float], bool],
        on_lapse: Callable[[], None] = lambda: None,
        deaf: Collection[str] = (),
        age_s: float = AGE_S,
    ) -> None:
        self.open = False
        self._bridge, self._may_forward, self._on_lapse = bridge, may_forward, on_lapse
        self._private, self._last = secrets.randbits(32), secrets.randbits(32)
        self._stamps = Stamps() if bridge.stamps else None
        if self._stamps is not None:
            self._stamps.advance(bridge.clock())
        self._replayed: Counter[tuple[int, bytes]] = Counter()  # by side and frame
        self._replayed_s = 0.0
        self._numbers = {id(side): number for number, side in enumerate(bridge.sides)}
        rules = [_rules(side, side.name in deaf) for side in bridge.sides]
        self.window = Window(rules, bridge.origin, bridge.seen, self._stamps, self._own_key, age_s)

    def _own_key(self) -> int:
        self._last = (self._last + 1) & _U32
        return self._private << 32 | self._last

    def passes(self, side: "Side", batch: Batch, stats: Stats) -> Batch | None:
        """What of a batch goes on; `stats` has counted the rest, and while we listen the window has it."""
        now = self._bridge.clock()
        if self.open and not self._may_forward(now):
            self._on_lapse()
        if self.open and self._may_forward(now):
            if self._stamps is not None:
                self._stamps.advance(now)
            return self._without_late(side, batch, stats, now) if self._replayed else batch
        self._listen(self._numbers[id(side)], batch, stats, now)
        return None

    def _without_late(self, side: "Side", batch: Batch, stats: Stats, now: float) -> Batch | None:
        """Without what the other still got out of that which we have sent for it: it would go back to where
        it came from."""
        if now >= self._replayed_s + LATE_S:
            self._replayed.clear()
            return batch
        number, kept = self._numbers[id(side)], list[bytes]()
        for message in payloads(batch):
            name = number, (split(message) or (None, message))[1]
            if self._replayed[name] > 0:
                self._replayed[name] -= 1
                stats.reject("late")
            else:
                kept.append(message)
        return from_payloads(kept) if kept else None

    def keeps(self, side: "Side", batch: Batch) -> bool:
        """Whether our turn ended since the entrance let `batch` in: then it waits for the next one."""
        now = self._bridge.clock()
        if not self.open or self._may_forward(now):
            return False
        self.purge()  # what is queued came before
        self._owe(side, payloads(batch), now)
        return True

    def _owe(self, side: "Side", messages: list[bytes], now: float) -> None:
        """What did not get out is not lost. Where several peers are behind a side without keys, some may
        have it already."""
        if side.trunk or len(side.ports) == 1:
            for message in messages:
                self.window.owe(self._numbers[id(side)], message, now)

    def _listen(self, side: int, batch: Batch, stats: Stats, now: float) -> None:
        self.window.advance(now)
        for message in payloads(batch):
            stats.reject(self.window.hear(side, message, now))

    def stamped(self, taken: Batch) -> Batch:
        """What enters without an envelope is stamped as any other candidate would."""
        if self._stamps is None or not isinstance(taken, Crossing):
            return taken
        return restamp(taken, self._bridge.origin, self._stamp)

    def _stamp(self, frame: bytes) -> int:
        assert self._stamps is not None
        number = self._stamps.next(frame)
        if number is not None:
            return self._bridge.origin << 32 | number
        key = self._own_key()
        self._bridge.seen.add(key)  # it may come back, and does not look like ours
        return key

    def resume(self, since_s: float | None = None) -> int:
        """Send what nobody has sent, then forward. How many frames that were.

        `since_s`: when our turn began, where that was a while ago: what is held back has waited since.
        """
        now = self._bridge.clock()
        due = self.window.replay(now)
        self._remember(due, now)
        self.open = True
        for number, side in enumerate(self._bridge.sides):
            if side.hold is not None:
                side.hold.since_s = since_s
            self._send(side, [item for item in due if item.sides >> number & 1])
            if side.hold is not None:
                side.hold.since_s = None
        return len(due)

    def _remember(self, due: list[Due], now: float) -> None:
        """Copies of these that are heard soon are the other's. Trunks know them by their keys, but for those
        that each candidate stamps with a key of its own."""
        self._replayed_s, self._replayed = now, Counter()
        for item in due:
            envelope, frame = split(item.message) or (None, item.message)
            private = envelope is not None and envelope.origin == self._private
            for number, side in enumerate(self._bridge.sides):
                if item.sides >> number & 1 and (private or not side.trunk):
                    self._replayed[number, frame] += 1

    def _send(self, side: "Side", due: list[Due]) -> None:
        for batch in self._batches(due):
            for port in side.ports:
                port.send(batch)

    def _batches(self, due: list[Due]) -> list[Batch]:
        """Runs of frames, as the ports take them."""
        made = []
        for _, group in groupby(enumerate(due), key=lambda pair: pair[0] // 256):
            items = [item for _, item in group]
            batch = from_payloads(item.message for item in items)
            if self._stamps is not None:
                spent = tuple(n for n, item in enumerate(items) if item.hops < 0)
                batch = Crossing(batch.keep(), batch.count, None, spent)
            made.append(batch)
        return made

    def pause(self) -> None:
        """Forward nothing more; listen instead. What pipes have queued still leaves."""
        self.open = False
        self._replayed.clear()

    def purge(self) -> None:
        """Another may be sending what waits here: it goes back to the window, to be heard or sent."""
        now = self._bridge.clock()
        for side in self._bridge.sides:
            for port in side.ports:
                self._owe(side, port.inner.purge("fenced"), now)
            if side.hold is not None:
                self._owe(side, side.hold.purge("fenced"), now)

    @property
    def stale(self) -> int:
        """How many frames the window has given up because they were too old."""
        return self.window.stats.dropped.get("stale", 0)

    def lag_s(self) -> float:
        """How long the other's frames have lately taken to come out."""
        return self.window.lag_s(self._bridge.clock())

    def queued(self) -> int:
        """Messages that wait in the pipes, or are held back."""
        return sum(
            port.inner.stats.queued + port.stats.queued for side in self._bridge.sides for port in side.ports
        )

    def blind(self, before_s: float) -> None:
        """A side was not heard for a while: what the window heard before then cannot be trusted."""
        self.window.void("blind", before_s, self._bridge.clock())
        if self._stamps is not None:
            self._stamps.forget()
            self._stamps.advance(self._bridge.clock())


def _rules(side: "Side", deaf: bool) -> SideRules:
    return SideRules(_admits(side.inward), _admits(side.outward), side.trunk, deaf)


def _admits(rules: Rules) -> Callable[[bytes], bool]:
    return lambda frame: rules.admit(frame, 0)
