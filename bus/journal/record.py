"""The record: a run of whole messages with a checksum, the same on disk as on a durable trunk. Pure.

Layout and meaning: docs/wire/durable.md. All numbers are big-endian. A record has at most 65,535 messages and
4 KiB of them, or one longer message. Nothing in its bytes raises anything but `RecordError`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import Final
from zlib import crc32

from bus.journal.errors import RecordError
from bus.journal.ranges import U64_MAX
from bus.wire.batch import LENGTH, LENGTH_BYTES, Buffer, equal_run
from bus.wire.sp import scan, walk

HEAD: Final = Struct(">BBHIIQQ")
HEAD_BYTES: Final = HEAD.size
MAGIC: Final = 0xBC
ORIGIN_FLAG, ENDS_FLAG = 1, 2
BODY_BYTES: Final = 4096
"""Messages of a record that has more than one."""
MESSAGES_MAX: Final = 0xFFFF
BYTES_MAX: Final = 0xFFFFFFFF
"""Bytes of a record behind its head."""
LONGEST_BYTES: Final = HEAD_BYTES + 24 + BODY_BYTES
"""Bytes of a record that has more than one message."""

_MARK: Final = bytes((MAGIC,))
_FIRST, _CHECKED_AT, _SECOND_AT = Struct(">BBHI"), 8, 12
_CHECKED, _ORIGIN, _ENDS = Struct(">BBHIQQ"), Struct(">QQ"), Struct(">Q")
_EXTRA_BYTES: Final = (0, 16, 8, 24)
"""Bytes between head and messages, by the flags."""
_LONG_SHARE: Final = 4


class NotWholeError(RecordError):
    """A record of which the last bytes are not there; `size` is how many it has, as far as is known."""

    def __init__(self, size: int) -> None:
        super().__init__("a record that is not whole")
        self.size = size


Origin = tuple[int, int]
"""A journal, and the number of a message in it."""


@dataclass(slots=True)
class Record:
    """One record. Message `k` of its `count` has the number `number + k`, and `origin[1] + k` in the journal
    `origin[0]`, if another one numbered it first. `ends` is one bit for each end that is due it, None for
    all. `encoded` are all of its bytes, of which the messages begin at `start`."""

    number: int
    count: int
    time_ms: int
    origin: Origin | None
    ends: int | None
    encoded: bytes
    start: int

    @property
    def last(self) -> int:
        """The number of its last message."""
        return self.number + self.count - 1

    @property
    def messages(self) -> bytes:
        """The messages, as a batch has them."""
        return self.encoded[self.start :]

    def identity(self, journal: int) -> Origin:
        """Return who numbered the first message first; `journal` is the one that has the record."""
        return self.origin or (journal, self.number)


def cut(data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Divide the messages of a batch into records; yield start, end and messages of each.

    Raises `RecordError` if the data do not end with a message.
    """
    position, stop = 0, len(data)
    while position < stop:
        if position + LENGTH_BYTES > stop:
            raise RecordError(f"{stop - position} bytes behind the last message of a batch")
        run, stride = equal_run(data, position, stop, stop)
        each = max(1, BODY_BYTES // stride)
        for _ in range(run // each):
            yield position, position + each * stride, each
            position += each * stride
        if run < each or not run:
            count, end = _some(data, position, stop)
            yield position, end, count
            position = end


def _some(data: bytes | bytearray, position: int, stop: int) -> tuple[int, int]:
    """Count the messages of mixed sizes that one record takes; return where they end too."""
    count, end = walk(data, position, min(position + BODY_BYTES, stop), MESSAGES_MAX)
    if not count:
        count, end = 1, position + LENGTH_BYTES + LENGTH.unpack_from(data, position)[0]
        if end > stop or end - position > BYTES_MAX - _EXTRA_BYTES[-1]:
            raise RecordError(f"a message of {end - position} bytes: no record carries it")
    return count, end


def encode(
    data: Buffer, number: int, time_ms: int, origin: Origin | None = None, ends: int | None = None
) -> list[Record]:
    """Return records of all messages in `data`, a batch's bytes. The first message has `number`.

    Raises `RecordError`.
    """
    whole, made = bytes(data), list[Record]()
    try:
        size = len(whole) - LENGTH_BYTES
        if 0 <= size == LENGTH.unpack_from(whole)[0] <= BODY_BYTES:
            return [_packed(whole, 1, number, time_ms, origin, ends)]
        for start, end, count in cut(whole):
            made.append(_packed(whole[start:end], count, number, time_ms, origin, ends))
            number += count
            if origin:
                origin = origin[0], origin[1] + count
    except error as fault:
        raise RecordError(f"no record can be made: {fault}") from None
    return made


def _packed(
    body: bytes, count: int, number: int, time_ms: int, origin: Origin | None, ends: int | None
) -> Record:
    flags = (ORIGIN_FLAG if origin else 0) | (0 if ends is None else ENDS_FLAG)
    extra = b""
    if flags:
        extra = (_ORIGIN.pack(*origin) if origin else b"") + (b"" if ends is None else _ENDS.pack(ends))
    head = _CHECKED.pack(MAGIC, flags, count, len(extra) + len(body), number, time_ms) + extra
    check = crc32(body, crc32(head)).to_bytes(4)
    encoded = b"".join((head[:_CHECKED_AT], check, head[_CHECKED_AT:], body))
    return Record(number, count, time_ms, origin, ends, encoded, HEAD_BYTES + len(extra))


def measure(data: Buffer, at: int = 0) -> int:
    """Return the bytes of the record that begins at `at`, by its head. Raises `RecordError`."""
    if len(data) - at < HEAD_BYTES:
        raise NotWholeError(HEAD_BYTES)
    magic, flags, count, length, _, _, _ = HEAD.unpack_from(data, at)
    _check_head(magic, flags, count, length)
    return HEAD_BYTES + int(length)


def _check_head(magic: int, flags: int, count: int, length: int) -> None:
    if magic != MAGIC or flags > 3 or not count:
        raise RecordError("no head of a record")
    extra = _EXTRA_BYTES[flags]
    if length < extra + count * LENGTH_BYTES or (count > 1 and length > extra + BODY_BYTES):
        raise RecordError(f"a record of {count} messages in {length} bytes")


def peek(data: bytes, at: int = 0) -> Record:
    """Return the record that begins at `at`, all but its messages checked. Raises `RecordError`."""
    if len(data) - at < HEAD_BYTES:
        raise NotWholeError(HEAD_BYTES)
    magic, flags, count, length, check, number, time_ms = HEAD.unpack_from(data, at)
    _check_head(magic, flags, count, length)
    encoded = data[at : at + HEAD_BYTES + length]
    if len(encoded) < HEAD_BYTES + length:
        raise NotWholeError(HEAD_BYTES + length)
    if crc32(encoded[_SECOND_AT:], crc32(encoded[:_CHECKED_AT])) != check:
        raise RecordError("a record with a wrong checksum")
    if not number or number + count - 1 > U64_MAX:
        raise RecordError(f"a record whose first number is {number}")
    start = HEAD_BYTES + _EXTRA_BYTES[flags]
    if not flags:
        return Record(number, count, time_ms, None, None, encoded, start)
    origin = _origin(encoded, count) if flags & ORIGIN_FLAG else None
    ends = _ENDS.unpack_from(encoded, start - _ENDS.size)[0] if flags & ENDS_FLAG else None
    return Record(number, count, time_ms, origin, ends, encoded, start)


def _origin(encoded: bytes, count: int) -> Origin:
    journal, number = _ORIGIN.unpack_from(encoded, HEAD_BYTES)
    if not number or number + count - 1 > U64_MAX:
        raise RecordError(f"a record whose first number was {number}")
    return journal, number


def decode(data: bytes, at: int = 0) -> Record:
    """Return the record that begins at `at`, its messages checked as well. Raises `RecordError`."""
    record = peek(data, at)
    messages = record.messages
    if scan(messages, len(messages)) != (record.count, len(messages)):
        raise RecordError(f"a record whose {record.count} messages do not fill it")
    return record


def part(record: Record, first: int, last: int) -> Record:
    """Return the record of those of the messages that have the numbers from `first` to `last`."""
    first, last = max(first, record.number), min(last, record.last)
    if (first, last) == (record.number, record.last):
        return record
    data, before = record.messages, first - record.number
    _, start = walk(data, 0, len(data), before)
    _, end = walk(data, start, len(data), last - first + 1)
    origin = record.origin and (record.origin[0], record.origin[1] + before)
    return _packed(data[start:end], last - first + 1, first, record.time_ms, origin, record.ends)


def without_ends(record: Record) -> Record:
    """Return the record as it goes over a wire, where `ends` are nobody's business."""
    if record.ends is None:
        return record
    return _packed(record.messages, record.count, record.number, record.time_ms, record.origin, None)


def find(data: bytes, at: int, low: int, high: int) -> int:
    """Return where, from `at` on, the next valid record begins whose numbers are from `low` to `high`;
    `len(data)` without one.

    The work is linear in the data, also if they were made to look like many records: long messages are then
    passed over.
    """
    budget = _LONG_SHARE * len(data)
    while (at := data.find(_MARK, at)) >= 0:
        cost = _cost(data, at)
        budget -= cost if cost > LONGEST_BYTES else 0
        if cost and (cost <= LONGEST_BYTES or budget >= 0) and _fits(data, at, low, high):
            return at
        at += 1
    return len(data)


def _cost(data: bytes, at: int) -> int:
    """Return the bytes that must be looked at to know whether a record is at `at`; 0 if none can be."""
    try:
        size = measure(data, at)
    except RecordError:
        return 0
    if at + size > len(data):
        return 0
    _, flags, count, length = _FIRST.unpack_from(data, at)
    extra = _EXTRA_BYTES[flags]
    message = LENGTH.unpack_from(data, at + HEAD_BYTES + extra)[0]
    fits = extra + LENGTH_BYTES + message <= length if count > 1 else extra + LENGTH_BYTES + message == length
    return size if fits else 0


def _fits(data: bytes, at: int, low: int, high: int) -> bool:
    try:
        record = decode(data, at)
    except RecordError:
        return False
    return low <= record.number and record.last <= high
