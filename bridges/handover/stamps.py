"""Stamps that all candidates for a bridge put on alike: by content and its count (docs/failover.md)."""

import zlib
from collections.abc import Sequence

from bus.wire.batch import Buffer

_U32 = 0xFFFFFFFF
LIFE_S = 14.3
"""Longer than a receiver remembers a key (`bridges.rules.Seen`), and no time at which readings come again:
two candidates that hear one a little apart must both know of the one before, or neither."""
YOUNG_S = 10.0  # a receiver may remember for so long what was stamped before we listened
CAP = 1 << 17
_JUMP = 1 << 20
_LIFE = int(LIFE_S * 1000) << 32


class Stamps:
    """Sequence numbers for frames without envelopes: CRC-32 of the frame, then the next that is free.

    A content's numbers are forgotten `LIFE_S` after it last came, however long a candidate has run, so that
    all give the same ones, and equal readings are told apart at every spacing. Bounded by `cap` numbers.
    `young_s`: until then it does not know what was used before.
    """

    def __init__(self, cap: int = CAP, young_s: float = YOUNG_S) -> None:
        self._young: dict[int, int] = {}  # a number in use: since when, and where to look for a free one
        self._old: dict[int, int] = {}
        self._half, self._young_s = cap // 2, young_s
        self._turned_s = float("-inf")
        self._born_s: float | None = None
        self._now, self._since = 0.0, 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def forget(self) -> None:
        """Begin anew: we have not listened for a while."""
        self._young, self._old, self._born_s = {}, {}, None

    def advance(self, now: float) -> None:
        """Note the time. Call it once a batch."""
        self._now, self._since = now, int(now * 1000) << 32
        if self._born_s is None:
            self._born_s = now
        if now - self._turned_s >= 2 * LIFE_S:
            self._young, self._old = {}, {}
            self._turned_s = now
        elif now - self._turned_s >= LIFE_S or len(self._young) >= self._half:
            self._old, self._young = self._young, {}
            self._turned_s = now

    def next(self, frame: Buffer) -> int | None:
        """Return the number for this frame, in use from now on; None if another may just have used it.

        That is so for `young_s` from the beginning, for contents that no candidate was heard to stamp since.
        """
        return None if self.doubts(frame) else self.take(frame)

    @property
    def is_young(self) -> bool:
        """Whether others may know numbers that were used before we listened."""
        return self._born_s is not None and self._now - self._born_s < self._young_s

    def doubts(self, frame: Buffer) -> bool:
        """Tell whether another may just have used the number that this frame would get."""
        first = zlib.crc32(frame)
        return self.is_young and self._after(first) == first

    def take(self, frame: Buffer) -> int:
        """Return the number for this frame, in use from now on, whatever others may have used."""
        first = zlib.crc32(frame)
        number = self._after(first)
        while (further := self._after(number)) != number:
            number = further
        self._use(first, number)
        return number

    def take_all(self, frames: Sequence[bytes]) -> list[int]:
        """Return what `take` does for each frame, in order; for frames that are new all at once."""
        firsts = list(map(zlib.crc32, frames))
        if not self._are_new(firsts):
            return list(map(self.take, frames))
        self._use_all(firsts)
        return firsts

    def foresee(self, frames: Sequence[bytes]) -> list[int] | None:
        """Return the numbers that others will give these frames, and use none; None if one is not new."""
        firsts = list(map(zlib.crc32, frames))
        return firsts if self._are_new(firsts) else None

    def heard_all(self, frames: Sequence[bytes], numbers: list[int]) -> None:
        """Do what `heard` does for each frame, in order."""
        if list(map(zlib.crc32, frames)) == numbers and self._are_new(numbers):
            return self._use_all(numbers)
        for frame, number in zip(frames, numbers, strict=True):
            self.heard(frame, number)
        return None

    def _are_new(self, firsts: list[int]) -> bool:
        """Tell whether the first numbers of contents are all apart, and free."""
        is_free = self._young.keys().isdisjoint(firsts) and self._old.keys().isdisjoint(firsts)
        return is_free and len(set(firsts)) == len(firsts)

    def _use_all(self, firsts: list[int]) -> None:
        since = self._since
        self._young.update(zip(firsts, [since | (number + 1) & _U32 for number in firsts], strict=True))

    def heard(self, frame: Buffer, number: int) -> int:
        """Continue behind `number`, with which another candidate has stamped this frame.

        Return by how many stamps of this frame it is beyond our last one; 0 if it is not beyond, or no number
        of this content.
        """
        first = zlib.crc32(frame)
        skipped = (number - self._after(first)) & _U32
        if skipped >= _JUMP:
            return 0
        self._use(first, number)
        return skipped + 1

    def _after(self, number: int) -> int:
        found = self._young.get(number) or self._old.get(number)
        if found is None or self._since - found >= _LIFE:
            return number
        return found & _U32

    def _use(self, first: int, number: int) -> None:
        self._young[first] = self._young[number] = self._since | (number + 1) & _U32
