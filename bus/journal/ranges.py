"""A set of numbers, kept as the ranges that it consists of. Pure.

All numbers are u64. The ranges lie in two sorted lists, so each question costs a bisection.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

U64_MAX: Final = (1 << 64) - 1
Range = tuple[int, int]
"""Numbers from the first to the last, both included."""


class RangeSet:
    """A set of numbers. `len` counts its ranges, between which at least one number is missing, and `count`
    its numbers. Iteration yields the ranges, lowest first."""

    __slots__ = ("_firsts", "_lasts", "count")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._firsts = list[int]()
        self._lasts = list[int]()
        self.count = 0
        self.update(ranges)

    def add(self, first: int, last: int, most: int = 0) -> bool:
        """Add the numbers from `first` to `last`. Return False if the set would then have more than `most`
        ranges: the numbers are not added. Raises ValueError for what is no range of u64."""
        if not 0 <= first <= last <= U64_MAX:
            raise ValueError(f"{first} to {last} is no range of u64")
        low, high = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if low == high and most and len(self._firsts) >= most:
            return False
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self.count += last - first + 1 - self._counted(low, high)
        self._firsts[low:high], self._lasts[low:high] = [first], [last]
        return True

    def _counted(self, low: int, high: int) -> int:
        return sum(self._lasts[at] - self._firsts[at] + 1 for at in range(low, high))

    def update(self, ranges: Iterable[Range]) -> None:
        """Add all numbers of `ranges`."""
        for first, last in ranges:
            self.add(first, last)

    def copy(self) -> "RangeSet":
        """Return an equal set that is independent of this one."""
        made = RangeSet()
        made._firsts[:], made._lasts[:], made.count = self._firsts, self._lasts, self.count
        return made

    def __iter__(self) -> Iterator[Range]:
        return iter(list(zip(self._firsts, self._lasts, strict=True)))

    def __len__(self) -> int:
        return len(self._firsts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._firsts == other._firsts and self._lasts == other._lasts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RangeSet({list(self)})"

    def __contains__(self, number: int) -> bool:
        at = bisect_left(self._lasts, number)
        return at < len(self._firsts) and self._firsts[at] <= number

    def covers(self, first: int, last: int) -> bool:
        """Return whether all numbers from `first` to `last` are in the set."""
        at = bisect_left(self._lasts, first)
        return last < first or (
            at < len(self._firsts) and self._firsts[at] <= first and last <= self._lasts[at]
        )

    def first_missing(self, start: int) -> int:
        """Return the lowest number from `start` on that is not in the set."""
        at = bisect_left(self._lasts, start)
        return self._lasts[at] + 1 if at < len(self._firsts) and self._firsts[at] <= start else start

    def begin_of(self, number: int) -> int:
        """Return the first number of the range that contains `number`; `number` itself without one."""
        at = bisect_left(self._lasts, number)
        return self._firsts[at] if at < len(self._firsts) and self._firsts[at] <= number else number

    def range_of(self, number: int) -> Range:
        """Return the range that contains `number`; of the number alone without one."""
        at = bisect_left(self._lasts, number)
        inside = at < len(self._firsts) and self._firsts[at] <= number
        return (self._firsts[at], self._lasts[at]) if inside else (number, number)

    @property
    def last(self) -> int:
        """The highest number; -1 in an empty set."""
        return self._lasts[-1] if self._lasts else -1

    def missing(self, first: int, last: int) -> list[Range]:
        """Return the ranges from `first` to `last` that are not in the set."""
        found, start = list[Range](), first
        for at in range(bisect_left(self._lasts, first), len(self._firsts)):
            if self._firsts[at] > last:
                break
            if start < self._firsts[at]:
                found.append((start, self._firsts[at] - 1))
            start = self._lasts[at] + 1
        if start <= last:
            found.append((start, last))
        return found

    def count_missing(self, first: int, last: int) -> int:
        """Count the numbers from `first` to `last` that are not in the set."""
        return sum(stop - start + 1 for start, stop in self.missing(first, last))

    def close_smallest(self) -> Range:
        """Add the numbers of the smallest gap between two ranges, the lowest of equal ones; return the gap.

        Raises ValueError without a gap.
        """
        gaps = zip(self._firsts[1:], self._lasts, strict=False)
        _, first, last = min((after - before, before + 1, after - 1) for after, before in gaps)
        self.add(first, last)
        return first, last
