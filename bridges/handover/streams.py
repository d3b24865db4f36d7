"""Messages that one side has had and another is to have, in order, many at once. Pure."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from operator import eq

MANY = 256
"""Stretches in which a message is searched for."""
_GONE = 4096  # frames that were, and are remembered


HOPS_END = 2
"""The bytes of an envelope up to its hops, which are fewer where a copy crossed other appliances."""


class Stretch:
    """Frames that were heard at once, at `heard_s`, from number `number` on in the order of hearing.

    `tails` are the same in their envelopes, from behind the hops on, and `starts` what stands before these.
    `in_doubt`: the stamps are those that we expect, and nobody may use them before they came.
    """

    __slots__ = ("at", "frames", "heard_s", "in_doubt", "number", "starts", "tails")

    def __init__(
        self,
        frames: list[bytes],
        starts: list[bytes],
        tails: list[bytes],
        heard_s: float,
        number: int,
        in_doubt: bool = False,
    ) -> None:
        self.frames, self.starts, self.tails = frames, starts, tails
        self.heard_s, self.number, self.in_doubt, self.at = heard_s, number, in_doubt, 0

    def __len__(self) -> int:
        return len(self.frames) - self.at

    def before(self, place: int) -> "Stretch":
        """Return what has not come before a place, as a stretch of its own."""
        some = slice(self.at, place)
        parts = self.frames[some], self.starts[some], self.tails[some]
        return Stretch(*parts, self.heard_s, self.number + self.at, self.in_doubt)

    def left(self) -> Iterator[tuple[int, tuple[bytes, bytes, bytes]]]:
        """Yield what has not come: the number of each, and its frame, start and tail."""
        parts = (some[self.at :] for some in (self.frames, self.starts, self.tails))
        return enumerate(zip(*parts, strict=True), self.number + self.at)


class Stream:
    """Stretches in the order of hearing, of `count` messages that are to come; `size_bytes` are their frames.

    They come `enveloped`, then told apart by their tails, or as frames.
    """

    __slots__ = ("_contents", "_enveloped", "_stretches", "count", "size_bytes")

    def __init__(self, enveloped: bool) -> None:
        self._enveloped = enveloped
        self._stretches: deque[Stretch] = deque()
        self._contents = set[bytes]()  # of all frames that are here, and of some that were
        self.count = self.size_bytes = 0

    def __len__(self) -> int:
        return self.count

    @property
    def is_in_doubt(self) -> bool:
        """Whether stamps of what is next are in doubt."""
        return bool(self._stretches) and self._stretches[0].in_doubt

    def add(self, stretch: Stretch) -> None:
        """Add a stretch that was heard last."""
        self._stretches.append(stretch)
        self._contents.update(stretch.frames)
        self.count += len(stretch)
        self.size_bytes += sum(map(len, stretch.frames))

    def follow(self, came: Sequence[bytes]) -> int:
        """Take out what is next, as far as it is what came. Return how many messages that are."""
        found = 0
        while self._stretches and found < len(came):
            first = self._stretches[0]
            some = self._next(first, came[found : found + len(first)])
            if not some:
                break
            found += some
            self._pass(first, some)
        return found

    def skip_to(self, came: bytes, frame: bytes) -> list[Stretch] | None:
        """Take out what stands before a message that came, and return it; None if that is not among the first
        stretches. `frame` is what the message holds."""
        some = islice(self._stretches, MANY if frame in self._contents else 0)
        for number, stretch in enumerate(some):
            items = self._items(stretch)
            if came in items[stretch.at :]:
                return self._skip(number, items.index(came, stretch.at))
        return None

    def _skip(self, number: int, place: int) -> list[Stretch]:
        """Take out the first stretches, so many, and the next one up to a place."""
        skipped = list[Stretch]()
        for _ in range(number):
            skipped.append(self._stretches[0].before(len(self._stretches[0].frames)))
            self._pass(self._stretches[0], len(self._stretches[0]))
        if place > self._stretches[0].at:
            skipped.append(self._stretches[0].before(place))
            self._pass(self._stretches[0], place - self._stretches[0].at)
        return skipped

    def _items(self, stretch: Stretch) -> list[bytes]:
        return stretch.tails if self._enveloped else stretch.frames

    def _next(self, first: Stretch, came: Sequence[bytes]) -> int:
        """Return how many messages of a stretch come first in what came."""
        wanted = self._items(first)[first.at : first.at + len(came)]
        return len(came) if wanted == came else sum(takewhile(bool, map(eq, wanted, came)))

    def _pass(self, first: Stretch, count: int) -> None:
        self.count -= count
        self.size_bytes -= sum(map(len, first.frames[first.at : first.at + count]))
        first.at += count
        if not first:
            self._stretches.popleft()
            if not self._stretches or len(self._contents) > 2 * self.count + _GONE:
                self._contents = {frame for one in self._stretches for frame in one.frames}

    def expire(self, oldest_s: float) -> int:
        """Forget what was heard before `oldest_s`. Return the number of messages."""
        before = self.count
        while self._stretches and self._stretches[0].heard_s < oldest_s:
            self._pass(self._stretches[0], len(self._stretches[0]))
        return before - self.count

    def may_hold(self, frames: Sequence[bytes]) -> bool:
        """Tell whether one of these frames is here, or was lately."""
        return not self._contents.isdisjoint(frames)

    def take(self) -> list[Stretch]:
        """Return all that is to come, and forget it."""
        found = list(self._stretches)
        self._stretches.clear()
        self._contents.clear()
        self.count = self.size_bytes = 0
        return found
