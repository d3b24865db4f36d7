"""Reading a journal in order: blocks, places that are kept between calls, and ways around damage."""

from bisect import bisect_right
from typing import Final, NamedTuple

from bus.journal.ranges import U64_MAX
from bus.journal.record import LONGEST_BYTES, Record
from bus.journal.segment import START, Segment, parse, resume, skim
from bus.journal.store import Store

BLOCK_BYTES: Final = 64 * 1024
PLACES: Final = 16
"""Readers that go on in order at the same time without looking for their place."""
_SKIM_BYTES: Final = 1 << 20


class _Place(NamedTuple):
    segment: Segment
    offset: int


class Reader:
    """The reader of a store. It keeps a place for each of the last `PLACES` calls, by the number that it
    ended before: who reads on from there goes on at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places = dict[int, _Place]()
        self._times = dict[int, int | None]()

    def read(self, number: int, most_bytes: int, until: int = U64_MAX) -> tuple[list[Record], int]:
        """Return records from `number` to before `until`, of some `most_bytes`, and the number after them.

        Numbers between that are in no record are damaged, or not in the journal any more. Raises `OSError`.
        """
        if number >= until:
            return [], number
        records, place = list[Record](), self._place(number)
        while place and number < until and most_bytes > 0:
            if place.offset >= place.segment.size or number > place.segment.last:
                number, place = self._next(place, number)
                continue
            found, number, place = self._some(place, number, most_bytes, until)
            records += found
            most_bytes -= sum(len(record.encoded) for record in found)
        if not place or number > until:
            number = until
        if place:
            self._keep(number, place)
        return records, number

    def _some(
        self, place: _Place, number: int, most_bytes: int, until: int
    ) -> tuple[list[Record], int, _Place]:
        """Return the records of one block, the number after them, and the place behind them."""
        segment, offset = place
        high, left = min(segment.last, until - 1), segment.size - offset
        size = max(BLOCK_BYTES, most_bytes + LONGEST_BYTES)
        data = self._store.block(segment, offset, size)
        found = parse(data, number, high, left, most_bytes)
        if found.needs_bytes and not found.records:
            data = self._store.block(segment, offset + found.at, found.needs_bytes)
            offset, left = offset + found.at, left - found.at
            found = parse(data, number, high, left, max(most_bytes, len(data)))
        if found.is_damaged and not found.records:
            offset += found.at
            rest = self._store.block(segment, offset, left)
            return [], number, _Place(segment, offset + resume(rest, number, segment.last))
        return found.records, found.low, _Place(segment, offset + found.at)

    def _next(self, place: _Place, number: int) -> tuple[int, _Place | None]:
        """Return the number and the place after a segment that has no more; no place after the last one."""
        index = self._store.index(place.segment.first) + 1
        number = max(number, place.segment.last + 1)
        if index < len(self._store.segments):
            following = self._store.segments[index]
            return max(number, following.first), _Place(following, START)
        if place.segment is self._store.active:
            self._keep(number, place)
        return number, None

    def _keep(self, number: int, place: _Place) -> None:
        self._places.pop(number, None)
        self._places[number] = place
        if len(self._places) > PLACES:
            del self._places[next(iter(self._places))]

    def _place(self, number: int) -> _Place | None:
        """Return where to look for a number; None if it is not in the journal."""
        segments = self._store.segments
        index = self._store.index(number)
        kept = self._places.pop(number, None)
        if kept and kept.segment in segments[max(0, index - 1) : index + 2]:
            return kept
        if index < 0:
            return _Place(segments[0], START) if segments else None
        return self._find(segments[index], number)

    def _find(self, segment: Segment, number: int) -> _Place:
        """Return the place of the last record of a segment that is at or before a number, by heads alone."""
        at = bisect_right(segment.marks, number, key=lambda mark: mark[0]) - 1
        begins, offset = segment.marks[at] if at >= 0 else (None, START)
        end = segment.marks[at + 1][1] if at + 1 < len(segment.marks) else segment.size
        while begins != number <= segment.last and offset < end:
            data = self._store.block(segment, offset, min(_SKIM_BYTES, end - offset))
            moved, begins = skim(data, number, begins)
            if not moved:
                break
            offset += moved
            segment.mark(begins, offset)
        return _Place(segment, offset)

    def first(self, number: int) -> Record | None:
        """Return the first record from a number on; None without one. Raises `OSError`."""
        places = self._places.copy()
        records, _ = self.read(number, 1)
        self._places = places
        return records[0] if records else None

    def time_ms(self, number: int) -> int | None:
        """Return when the first message from a number on was journaled; None without one. Raises OSError."""
        if number not in self._times:
            record = self.first(number)
            self._times = {number: record.time_ms if record else None}
        return self._times[number]
