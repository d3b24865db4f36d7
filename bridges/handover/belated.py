"""The messages that who reads late may not take for new: another sent them while they waited. Pure.

A standby forgets what it heard of a frame after a while. On a machine that is too busy a frame may wait in
the socket of a wire for longer; the time at which it came, by the kernel or an adapter, tells.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from bridges.handover.sides import moved_all
from bus.wire.batch import Batch, batch_of, payloads
from bus.wire.envelope import take_apart

_LAG_MAX_S = 30.0  # a wire holds no more; later, the clock was set


class Sent(NamedTuple):
    """A message that another gateway has sent, heard at `heard_s`, and that has yet to come in by a side."""

    side: int
    content: bytes
    heard_s: float


class Belated:
    """The messages that came before our turn and are read in it.

    Of its methods, `now` is the time in seconds, and `age_s` how long a standby keeps what it hears;
    `came_ns` is when each message of a batch came, in order, and `now_ns` the time by the same clock.
    """

    def __init__(self) -> None:
        self._turn_s = -inf
        self._sent = defaultdict[tuple[int, bytes], deque[float]](deque)

    def begin(self, now: float, sent: Iterable[Sent]) -> None:
        """Note that our turn begins, and what others have sent that we did not read."""
        self.end()
        self._turn_s = now
        for one in sent:
            self._sent[one.side, one.content].append(one.heard_s)

    def revise(self, places: Sequence[int | None]) -> None:
        """Change to other sides. `places`: for each old side its new number, None if it has gone."""
        self._sent = defaultdict(deque, moved_all(self._sent, places))

    def end(self) -> None:
        """Note that our turn is over."""
        self._turn_s = -inf
        self._sent.clear()

    def unheard(self, batch: Batch, came_ns: Sequence[int], now_ns: int, age_s: float) -> Batch | None:
        """Return a batch of a standby without what it would have given up by now."""
        since_ns = now_ns - int(age_s * 1e9)
        if came_ns[0] >= since_ns:
            return batch
        return batch_of(
            [one for one, at_ns in zip(payloads(batch), came_ns, strict=True) if at_ns >= since_ns]
        )

    def unsent(
        self, side: int, batch: Batch, came_ns: Sequence[int], now_ns: int, now: float, age_s: float
    ) -> Batch | None:
        """Return a batch of who forwards without what another one has sent before our turn, or given up."""
        ours_s = now - self._turn_s
        if ours_s > _LAG_MAX_S or now_ns - came_ns[0] <= ours_s * 1e9:
            return batch
        since_s = self._turn_s - age_s
        times_s = (now - max(0, now_ns - at_ns) / 1e9 for at_ns in came_ns)
        return batch_of(
            [
                one
                for one, at_s in zip(payloads(batch), times_s, strict=True)
                if at_s >= self._turn_s or (at_s >= since_s and not self._was_sent(side, one, at_s))
            ]
        )

    def _was_sent(self, side: int, message: bytes, came_s: float) -> bool:
        """Tell whether a message was heard from another gateway, which is after it came."""
        heard_s = self._sent.get((side, take_apart(message).content))
        while heard_s and heard_s[0] < came_s:
            heard_s.popleft()
        if not heard_s:
            return False
        heard_s.popleft()
        return True
