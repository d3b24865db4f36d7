"""The frames that we sent and that come back, told by what they hold where a driver has no mark. Pure."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from bridges.items import CanFrame

FRAMES_MAX: Final = 4096


class Echoes:
    """The frames that we sent and that may still come back, in order, at most 4096.

    Most interfaces return none. So each is expected until a time only: then an equal frame is another node's,
    such as one of the gateway that acts in our place.
    """

    __slots__ = ("_frames",)

    def __init__(self, frames: Iterable[tuple[CanFrame, float]] = ()) -> None:
        self._frames = deque(frames, FRAMES_MAX)

    def __bool__(self) -> bool:
        return bool(self._frames)

    def copy(self) -> "Echoes":
        """Return the same frames, to be taken without a trace."""
        return Echoes(self._frames)

    def sent(self, frames: Iterable[CanFrame], until_s: float) -> None:
        """Note frames that were sent, and until when they are expected."""
        self._frames.extend((frame, until_s) for frame in frames)

    def take(self, frame: CanFrame, now_s: float) -> bool:
        """Return whether a frame is one that we sent. If so, forget it and all before it."""
        frames = self._frames
        while frames and frames[0][1] < now_s:
            frames.popleft()
        place = next((n for n, (one, _) in enumerate(frames) if is_same(one, frame)), -1)
        for _ in range(place + 1):
            frames.popleft()
        return place >= 0


def is_same(one: CanFrame, other: CanFrame) -> bool:
    """Tell whether two frames have the same identifier and data: drivers do not keep all marks."""
    return one[0] == other[0] and one[1] == other[1]
