"""The frames that a standby has heard, in order, by key and by content. Pure."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

COUNT = 65536
BYTES = 16 << 20


class Noted:
    """One frame in the window: `due` are the sides to send it to, `awaited` those where it may yet be heard.

    Both are bits by the number of the side, as is `withheld`, where it was due and is too old to be sent.
    `ours` are those of `due` where we would not hear that another gateway sends it, so we may only while none
    has its turn. `came` is the number of the side that its original came in by; -1 if that is not known yet,
    or if it came while this gateway forwarded. `first` is the side where it was heard first, `sides` are all
    where it was, as bits, and `number` is its place in the order of hearing.
    """

    __slots__ = (
        "awaited",
        "came",
        "due",
        "first",
        "frame",
        "heard_s",
        "hops",
        "key",
        "named",
        "number",
        "ours",
        "sides",
        "void",
        "withheld",
    )

    def __init__(self, frame: bytes, key: int, named: bool, hops: int, heard_s: float) -> None:
        self.frame, self.key, self.named, self.hops, self.heard_s = frame, key, named, hops, heard_s
        self.due = self.awaited = self.withheld = self.ours = self.sides = self.number = 0
        self.came = self.first = -1
        self.void = False  # never to be sent: only its copies are to be known


class HeardFrames:
    """The frames heard, at most `count` with `size_bytes`. `by_key` has those whose key is known."""

    __slots__ = ("_by_frame", "_bytes", "_count", "_frames", "_size_bytes", "by_key")

    def __init__(self, count: int = COUNT, size_bytes: int = BYTES) -> None:
        self._count, self._size_bytes = count, size_bytes
        self._frames: dict[Noted, None] = {}  # in the order in which they were heard
        self.by_key: dict[int, Noted] = {}
        self._by_frame: dict[bytes, Noted | deque[Noted]] = {}  # a deque only of several: it is large
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def in_order(self) -> Iterable[Noted]:
        """Return the frames in the order of hearing. None may be added or removed while they are read."""
        return self._frames

    def too_many(self, size: int) -> Noted | None:
        """Return the oldest frame if it must go before one of `size` bytes finds room."""
        full = len(self._frames) >= self._count or self._bytes + size > self._size_bytes
        return next(iter(self._frames), None) if full else None

    def has_room(self, count: int, size_bytes: int) -> bool:
        """Tell whether so many more frames find room without one that must go."""
        return len(self._frames) + count <= self._count and self._bytes + size_bytes <= self._size_bytes

    def knows(self, frames: Iterable[bytes]) -> bool:
        """Tell whether one of these contents is there."""
        return not self._by_frame.keys().isdisjoint(frames)

    def oldest(self, side: int, frame: bytes, among: Callable[[Noted], bool]) -> Noted | None:
        """Return the oldest frame of this content, `among` some, that may yet be heard on a side."""
        found = self._by_frame.get(frame, ())
        for noted in (found,) if isinstance(found, Noted) else found:
            if noted.awaited >> side & 1 and among(noted):
                return noted
        return None

    def add(self, noted: Noted) -> None:
        """Add a frame that was heard last."""
        self._frames[noted] = None
        if noted.key >= 0 and noted.hops >= 0:
            self.by_key[noted.key] = noted
        same = self._by_frame.setdefault(noted.frame, noted)
        if isinstance(same, deque):
            same.append(noted)
        elif same is not noted:
            self._by_frame[noted.frame] = deque((same, noted))
        self._bytes += len(noted.frame)

    def merge(self, some: Sequence[Noted]) -> None:
        """Add frames, in order, that were heard among those that are there, by their numbers."""
        every = some
        if self._frames and some and next(reversed(self._frames)).number > some[0].number:
            every = sorted([*self._frames, *some], key=attrgetter("number"))
            self.clear()
        for noted in every:
            self.add(noted)

    def remove(self, noted: Noted) -> None:
        """Remove a frame that is there."""
        del self._frames[noted]
        self._bytes -= len(noted.frame)
        self._forget_key(noted)
        same = self._by_frame[noted.frame]
        if isinstance(same, deque):
            same.remove(noted)
        if same is noted or not same:
            del self._by_frame[noted.frame]

    def rename(self, noted: Noted, key: int, hops: int) -> None:
        """Give a frame that was heard bare the key that its copy has."""
        self._forget_key(noted)
        noted.key, noted.hops, noted.named = key, hops - 1, True
        if hops:
            self.by_key[key] = noted

    def _forget_key(self, noted: Noted) -> None:
        if self.by_key.get(noted.key) is noted:
            del self.by_key[noted.key]

    def clear(self) -> None:
        """Forget all frames."""
        self._frames.clear()
        self.by_key.clear()
        self._by_frame.clear()
        self._bytes = 0
