"""Looking through all of a segment: what is in it, what is damaged, and how it ends."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from bus.journal.ranges import U64_MAX
from bus.journal.record import Record
from bus.journal.segment import START, Segment, parse, resume, torn_last
from bus.journal.store import Store

_BLOCK_BYTES: Final = 256 * 1024


class Piece(NamedTuple):
    """A piece of a segment: records, or `damaged` bytes without any. `end` is where it ends."""

    records: list[Record]
    damaged: int
    end: int


def pieces(store: Store, segment: Segment, high: int = U64_MAX) -> Iterator[Piece]:
    """Yield all of a segment in order, the records with numbers that go up, to `high`. Raises `OSError`."""
    low, offset, size = segment.first, START, _BLOCK_BYTES
    while offset < segment.size and low <= high:
        left = segment.size - offset
        found = parse(store.block(segment, offset, size), low, high, left, size)
        low, size = found.low, max(_BLOCK_BYTES, found.needs_bytes)
        offset += found.at
        if found.at:
            yield Piece(found.records, 0, offset)
        elif not found.is_damaged and not found.needs_bytes:
            return
        if found.is_damaged:
            damaged = resume(store.block(segment, offset, segment.size - offset), low, high)
            offset += damaged
            yield Piece([], damaged, offset)


class Ending(NamedTuple):
    """The end of a segment: its last number, those of a torn record at its end included, whether it is whole,
    and the ranges of numbers in it that other journals gave, each with that journal."""

    last: int
    is_whole: bool
    origins: list[tuple[int, int, int]]


def ending(store: Store, segment: Segment) -> Ending:
    """Look through a segment to its end. Raises `OSError`."""
    last, end, is_whole = segment.first - 1, START, True
    origins = list[tuple[int, int, int]]()
    for piece in pieces(store, segment):
        is_whole = is_whole and not piece.damaged
        for record in piece.records:
            last = record.last
            if record.origin:
                origins.append((*record.origin, record.origin[1] + record.count - 1))
        if not piece.damaged:
            end = piece.end
    torn = torn_last(store.block(segment, end, segment.size - end), last + 1)
    return Ending(max(last, torn), is_whole, origins)
