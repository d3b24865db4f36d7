"""The segment: one file of records, named by the number of its first message. Pure.

A head of 36 bytes, then records: magic, version u16, journal u64, first number u64, the running time of the
journal u64 (seconds, when the segment was begun), CRC-32 of these. All numbers are big-endian.
"""

import re
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from bus.journal.errors import RecordError
from bus.journal.ranges import U64_MAX, RangeSet
from bus.journal.record import HEAD, HEAD_BYTES, NotWholeError, Record, find, measure, part, peek
from bus.wire.batch import Buffer

MAGIC: Final = b"BCJRNL"
VERSION: Final = 1
MARK_BYTES: Final = 64 * 1024
"""The least distance of two marks in a segment."""
_HEAD, _CRC = Struct(">6sHQQQ"), Struct(">I")
START: Final = _HEAD.size + _CRC.size
"""The place where the records of a segment begin."""
_NAME: Final = re.compile(r"([0-9]{20})\.log")


@dataclass(eq=False, slots=True)
class Segment:
    """A segment, with the numbers of its messages from `first` to `last`, and its bytes. `begun_s` and
    `end_s` are the running times of the journal at its beginning and not before its last record. `marks` are
    numbers of records, and where they begin."""

    first: int
    last: int
    size: int
    begun_s: int
    end_s: int
    marks: list[tuple[int, int]] = field(default_factory=list)

    def mark(self, number: int, offset: int) -> None:
        """Note where a record begins, unless it is near what is noted, or before it."""
        if not self.marks or offset >= self.marks[-1][1] + MARK_BYTES:
            self.marks.append((number, offset))


def name_of(first: int) -> str:
    """Return the name of the segment whose first message has a number."""
    return f"{first:020}.log"


def first_of(name: str) -> int | None:
    """Return the first number of the segment with that name; None if it is none."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and 0 < int(match[1]) <= U64_MAX else None


class Head(NamedTuple):
    """The head of a segment: its journal, its first number, and the journal's running time in seconds."""

    journal: int
    first: int
    begun_s: int


def pack_head(head: Head) -> bytes:
    """Return the bytes of a head."""
    data = _HEAD.pack(MAGIC, VERSION, *head)
    return data + _CRC.pack(crc32(data))


def parse_head(data: bytes) -> Head | None:
    """Return the head in the first bytes of a segment; None if it is damaged, or of another version."""
    if len(data) < START or crc32(data[: _HEAD.size]) != _CRC.unpack_from(data, _HEAD.size)[0]:
        return None
    magic, version, *rest = _HEAD.unpack_from(data)
    return Head(*rest) if (magic, version) == (MAGIC, VERSION) else None


class Parsed(NamedTuple):
    """The content of a piece of a segment: its records, where the next one begins, and the number that it
    is to have. `needs_bytes`: so many are needed from there on to see more, 0 for a usual piece.
    `is_damaged`: no record is there."""

    records: list[Record]
    at: int
    low: int
    needs_bytes: int = 0
    is_damaged: bool = False


def parse(data: bytes, low: int, high: int, left: int, most_bytes: int) -> Parsed:
    """Return the records in `data` with numbers from `low` to `high`: at least one, and no more than come to
    `most_bytes`. `left` are the bytes of the segment from the beginning of `data` on.

    Numbers go up: a record that does not is passed over, and one that does in part is cut.
    """
    records, at, stop = list[Record](), 0, min(len(data), most_bytes)
    while at < stop and low <= high:
        try:
            record = peek(data, at)
        except NotWholeError as error:
            needs = error.size if at + error.size <= left else 0
            return Parsed(records, at, low, needs, is_damaged=not needs)
        except RecordError:
            return Parsed(records, at, low, is_damaged=True)
        end, last = at + len(record.encoded), record.last
        if record.number < low or last > high:
            if last < low or record.number > high:
                at = end
                continue
            record = part(record, low, high)
            last = record.last
        records.append(record)
        if last == high:  # the rest of it may be asked for later
            return Parsed(records, at, high + 1)
        at, low = end, last + 1
    return Parsed(records, at, low)


def skim(data: Buffer, low: int, number: int | None = None) -> tuple[int, int]:
    """Return the place and the number of the last record that begins at or before `low`, reached by heads.

    No checksum is looked at, but each record must go on with the number after the one before.
    """
    at, found = 0, (0, number or 0)
    while at + HEAD_BYTES <= len(data):
        try:
            size = measure(data, at)
        except RecordError:
            break
        count, begins = HEAD.unpack_from(data, at)[2], HEAD.unpack_from(data, at)[5]
        if begins > low or (number is not None and begins != number):
            break
        found, number, at = (at, begins), begins + count, at + size
    return found


def resume(data: bytes, low: int, high: int) -> int:
    """Return where the next record begins after a damaged one at the start of `data`; the end without one.

    If its head can be believed, the record behind it is tried first: a message may contain such bytes.
    """
    try:
        size = measure(data)
        following = peek(data, size)
    except RecordError:
        return find(data, 1, low, high)
    _, _, count, _, _, number, _ = HEAD.unpack_from(data)
    is_next = following.number == number + count and low <= number and following.last <= high
    return size if is_next else find(data, 1, low, high)


def torn_last(data: Buffer, low: int) -> int:
    """Return the last number of a torn record whose head is whole and goes on with `low`; else `low - 1`."""
    try:
        measure(data)
    except RecordError:
        return low - 1
    if len(data) < HEAD_BYTES:
        return low - 1
    _, _, count, _, _, number, _ = HEAD.unpack_from(data)
    return int(number + count - 1) if number == low and number + count - 1 <= U64_MAX else low - 1


def share(segment: Segment, held: RangeSet) -> int:
    """Return how many bytes of a segment a consumer has not acknowledged."""
    total = segment.last - segment.first + 1
    return segment.size * held.count_missing(segment.first, segment.last) // total if total > 0 else 0
