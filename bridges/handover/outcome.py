"""The frames that came out lately: how long they took, and the last of each topic. Pure."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bus.wire.frame import FRAME_BYTES_MIN, is_frame

LAG_S = 2.0
TOPICS = 16384
PASSED = 1 << 16  # frames that came out at once, of which nobody has asked for one


class Lag:
    """The largest lag noted in the last `LAG_S` to twice that."""

    def __init__(self) -> None:
        self._before_s = self._now_s = 0.0
        self._until_s = 0.0

    def note(self, lag_s: float, now: float) -> None:
        self._turn(now)
        self._now_s = max(self._now_s, lag_s)

    def _turn(self, now: float) -> None:
        if now >= self._until_s:
            self._before_s = self._now_s if now < self._until_s + LAG_S else 0.0
            self._now_s, self._until_s = 0.0, now + LAG_S

    def most(self, now: float) -> float:
        self._turn(now)
        return max(self._before_s, self._now_s)


class _Passed(NamedTuple):
    """Frames that came out at once on a side, and the place of the last of them in the order of hearing."""

    side: int
    frames: Sequence[bytes]
    number: int
    at_s: float


class LastOut:
    """The last frame that came out of each topic and side, by its place in the order of hearing."""

    __slots__ = ("_count", "_last", "_passed")

    def __init__(self) -> None:
        self._last: dict[tuple[int, bytes], int] = {}
        self._passed: deque[_Passed] = deque()  # of many, few are ever asked for
        self._count = 0

    def note(self, side: int, frame: bytes, number: int) -> None:
        """Note that a frame came out on a side."""
        if len(self._last) >= TOPICS:
            self._last.clear()
        key = side, topic(frame)
        self._last[key] = max(number, self._last.get(key, 0))

    def note_all(self, side: int, frames: Sequence[bytes], number: int, now: float) -> None:
        """Note that frames came out on a side, in place of which the number of the last one will do."""
        self._passed.append(_Passed(side, frames, number, now))
        self._count += len(frames)
        if self._count > PASSED:
            self._look()

    def forget_before(self, oldest_s: float) -> None:
        """Forget what came out at once before a time: nobody asks about frames that are older."""
        while self._passed and self._passed[0].at_s < oldest_s:
            self._count -= len(self._passed.popleft().frames)

    def _look(self) -> None:
        for side, frames, number, _ in self._passed:
            for frame in frames:
                self.note(side, frame, number)
        self._passed.clear()
        self._count = 0

    def is_overtaken(self, side: int, frame: bytes, number: int) -> bool:
        """Tell whether a later frame of the same topic came out on a side."""
        if self._passed:
            self._look()
        return number < self._last.get((side, topic(frame)), 0)

    def clear(self) -> None:
        """Forget what came out."""
        self._last.clear()
        self._passed.clear()
        self._count = 0


def topic(frame: bytes) -> bytes:
    """Return the type and tokens of a frame: what it is about. Frames of one topic come in order."""
    return frame[:1] + frame[FRAME_BYTES_MIN : FRAME_BYTES_MIN + 4 * frame[1]] if is_frame(frame) else frame
