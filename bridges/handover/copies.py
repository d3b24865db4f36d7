"""The numbers of frames whose copy, stamped by another candidate, came before the frame itself. Pure."""

from collections import deque
from hashlib import blake2b
from typing import NamedTuple

from bridges.handover.stamps import Stamps

LIFE_S = 1.0
"""A number waits for its frame for so long, or up to twice as long: a busy machine may stop us in between."""
APART_S = 0.03
"""A frame and its copy come no further apart than this, but for a fault."""
CAP = 16384
SKIPPED = 64
"""Copies of one content that may be missing at once."""
_SHORT_BYTES = 64  # a longer content is known by its digest


class _Early(NamedTuple):
    """The number of a copy, and when it came."""

    number: int
    at_s: float


class _Content:
    """The copies of one content that wait for their frames; `taken_s` is when a frame last took a number, and
    `waited_s` how long that number had waited."""

    __slots__ = ("taken_s", "waited_s", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Early] = deque()
        self.taken_s, self.waited_s = float("-inf"), 0.0

    def is_nearer(self, now: float) -> bool:
        """Tell whether a copy that comes now is of the frame that took an earlier number.

        So it is if that frame came much nearer to this copy than to the one whose number it took: the frame
        of the earlier copy never came.
        """
        return self.waited_s > APART_S and now - self.taken_s < self.waited_s / 2


class EarlyCopies:
    """The stamps that candidates share while all of them forward.

    Each frame gets the number that another candidate gave it, if that is known, else the next of `stamps`. So
    equal readings keep their numbers, whichever comes first, a frame or its copy. Bounded by `cap` contents.
    """

    def __init__(self, stamps: Stamps, cap: int = CAP) -> None:
        self.stamps = stamps
        self._young: dict[bytes, _Content] = {}
        self._old: dict[bytes, _Content] = {}
        self._half = cap // 2
        self._now = self._turned_s = float("-inf")

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def advance(self, now: float) -> None:
        """Note the time. Call it once a batch."""
        self.stamps.advance(now)
        self._now = now
        age_s = now - self._turned_s
        if age_s >= LIFE_S or len(self._young) >= self._half:
            self._old, self._young = ({} if age_s >= 2 * LIFE_S else self._young), {}
            self._turned_s = now

    def heard(self, frame: bytes, number: int) -> None:
        """Note the number that another candidate gave to a frame.

        Numbers that it skips are those of frames like this one whose copies have not come, but for the first
        number that we hear of a content after our start: those before it are of frames before that.
        """
        most = 1 if self.stamps.doubts(frame) else SKIPPED
        count = min(self.stamps.heard(frame, number), most)
        if not count:
            return
        content = self._content(frame)
        if content.is_nearer(self._now):
            content.taken_s = float("-inf")
            count = 0
        content.waiting += (
            _Early((number - back) & 0xFFFFFFFF, self._now) for back in range(count - 1, -1, -1)
        )

    def _content(self, frame: bytes) -> _Content:
        """Return what is known of a content, for as long again."""
        name = _name(frame)
        found = self._young.get(name) or self._old.pop(name, _Content())
        self._young[name] = found
        while found.waiting and self._now - found.waiting[0].at_s >= LIFE_S:
            found.waiting.popleft()
        return found

    def knows(self, frame: bytes) -> bool:
        """Tell whether the number of a frame is sure."""
        return not self.stamps.doubts(frame)

    def take(self, frame: bytes) -> int:
        """Return the number of a frame that came in."""
        name = _name(frame)
        if name not in self._young and name not in self._old:
            return self.stamps.take(frame)
        content = self._content(frame)
        if not content.waiting:
            return self.stamps.take(frame)
        number, at_s = content.waiting.popleft()
        content.taken_s, content.waited_s = self._now, self._now - at_s
        return number


def _name(content: bytes) -> bytes:
    """Return a content, or its digest if it is long: messages that are no frames have up to a mebibyte."""
    return content if len(content) <= _SHORT_BYTES else blake2b(content, digest_size=16).digest()
