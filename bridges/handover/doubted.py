"""Frames that a gateway heard before it heard all sides, and may have to send all the same. Pure.

Another gateway may have sent them unheard, or brought them from the very side where they seem to be due. What
comes later tells: a later frame of their origin and topic that was heard on both sides. So the other gateway
has lived on, and they crossed as that one did, for frames of a topic come in order.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from bridges.handover.heard import Noted
from bridges.handover.outcome import topic
from bus.wire.frame import is_frame

_OfTopic = tuple[int, bytes]
"""The origin of a frame, and its type and tokens; of opaque messages, which no side tells apart, b""."""


class Doubted:
    """The doubted frames of a window by the side where they are due, in the order of hearing.

    They are forgotten at `until_s`, when none is left in the window.
    """

    def __init__(self) -> None:
        self._frames = defaultdict[tuple[_OfTopic, int], deque[Noted]](deque)
        self._until_s = 0.0

    def begin(self, until_s: float) -> None:
        """Forget all, for others that are in the window until then."""
        self._frames.clear()
        self._until_s = until_s

    def add(self, noted: Noted) -> None:
        """Doubt one more, if it was heard at all."""
        if noted.first < 0:
            return
        name = _of_topic(noted)
        for side in _numbers(noted.due):
            self._frames[name, side].append(noted)

    def advance(self, now: float) -> None:
        """Forget all once their time is over."""
        if self._frames and now > self._until_s:
            self._frames.clear()

    def crossed(self, later: Noted) -> Iterable[tuple[Noted, int]]:
        """Yield what has crossed as a later frame did, and the number of the side where it is due no more."""
        return self._crossed(later) if self._frames else ()

    def _crossed(self, later: Noted) -> Iterator[tuple[Noted, int]]:
        name = _of_topic(later)
        for side in _numbers(later.sides):
            frames = self._frames.get((name, side))
            while frames and _is_told_by(frames[0], later, side):
                noted = frames.popleft()
                if noted.due >> side & 1:
                    yield noted, side


def _is_told_by(noted: Noted, later: Noted, side: int) -> bool:
    """Tell whether a later frame tells of this one, or it is due on a side no more anyway."""
    tells = noted.number < later.number and later.sides >> noted.first & 1
    return bool(tells) or not noted.due >> side & 1


def _of_topic(noted: Noted) -> _OfTopic:
    return noted.key >> 32, topic(noted.frame) if is_frame(noted.frame) else b""


def _numbers(sides: int) -> Iterator[int]:
    """Yield the numbers of sides."""
    return (number for number in range(sides.bit_length()) if sides >> number & 1)
