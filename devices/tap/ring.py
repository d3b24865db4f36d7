"""A ring of records in shared memory, from a process that must not wait to one that may.

The memory is a `memfd` that the reader inherits, so records outlive both processes. Layout: u64 head, u64
tail (bytes ever put and taken), then the records, each at a multiple of 8: u32 length of the record, u8 kind,
u8 1 if each message has a time of its own (else 0), u16 length of the place, u32 count, u32 length of the
data, u64 ns, u64 number of the record; the place; a u64 ns for each message, if they have times; the data.
Native byte order. Two more words hold numbers that a reader leaves for its successor.

Only the writer stores the head and only the reader the tail, each as one aligned word after the bytes that
it covers.

Memory is spent where records are: the first lap allocates pages, and a reader that is not in a hurry gives
back those that it has read (`release` with `give_back`). The writer never fills the last page before the
tail, so the page that the tail is in can be given back as well.
"""

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from bus.wire.batch import Buffer

RING_BYTES = 8 << 20
HEADER = Struct("=IBBHIIQQ")
HEADER_BYTES = HEADER.size
COUNT_MAX = 0xFFFFFFFF
"""The most messages that one record can stand for."""
_START = Struct("=IB")
_CONTROL_BYTES = 64
_PLACE_BYTES = 1024  # a generous guess
_TRAFFIC = frozenset((0, 7))  # the kinds of frames and of items on a wire, which come in masses
_RESERVE_BYTES = 1 << 16  # closed to these: room to record a loss when frames have filled the ring
_HEAD, _TAIL, _NEXT_NUMBER, _NEXT_ROW = range(4)
_PAGE = mmap.PAGESIZE
_SKIP = 0xFF  # the kind of the filler at the end of the memory, where a record did not fit


class Record(NamedTuple):
    """A record of the ring. `data` is valid until `release`. `number` counts records, from 0.

    `times` has the time of each message, as u64 in ns, where they are known; else it is empty.
    """

    kind: int
    place: bytes
    messages: int
    ts_ns: int
    number: int
    data: memoryview
    times: bytes = b""


class RecordPlace(NamedTuple):
    """The place where a record was seen, and what became of it: the columns `hub`, `bus`, `peer`, `dir`,
    `verdict` and `reason` of a capture."""

    hub: str
    bus: str
    peer: str
    dir: int
    verdict: int = 0
    reason: str | None = None

    def encode(self) -> bytes:
        """Return the place as it is stored in a record: JSON."""
        return json.dumps(self).encode()


def _frames_bytes(size_bytes: int) -> int:
    return size_bytes - min(size_bytes // 16, _RESERVE_BYTES)


def longest_bytes(size_bytes: int) -> int:
    """Return the length of the longest message for which an empty ring has room (`Ring.has_room`)."""
    return _frames_bytes(size_bytes) // 2 - HEADER_BYTES - _PLACE_BYTES


@lru_cache(maxsize=65536)
def place_of(encoded: bytes) -> RecordPlace:
    """Return the place that `RecordPlace.encode` encoded."""
    return RecordPlace(*json.loads(encoded))


class Ring:
    """The ring in one process: the gateway `put`s records, the writer takes `records` and `release`s them.

    `descriptor` is that of the shared memory, which has `size_bytes` for records, a multiple of 8.
    """

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self.descriptor, self.size_bytes = descriptor, size_bytes
        self._can_give_back = size_bytes // 16 >= _RESERVE_BYTES
        self._most_bytes = size_bytes - _PAGE * self._can_give_back
        self._frames_bytes = _frames_bytes(size_bytes)
        self._map = mmap.mmap(descriptor, _CONTROL_BYTES + size_bytes, mmap.MAP_SHARED)
        self._view = memoryview(self._map)
        self._control = self._view[:32].cast("Q")
        self._data = self._view[_CONTROL_BYTES:]
        self._head, self._read = self._control[_HEAD], self._control[_TAIL]

    @classmethod
    def create(cls, size_bytes: int = RING_BYTES) -> "Ring":
        """Make an empty ring. A child inherits its descriptor only by `pass_fds`."""
        size_bytes = -(-size_bytes // 8) * 8
        descriptor = os.memfd_create("buscoupler-tap")
        os.ftruncate(descriptor, _CONTROL_BYTES + size_bytes)
        return cls(descriptor, size_bytes)

    @property
    def head(self) -> int:
        """The bytes ever put, as this process knows."""
        return self._head

    @property
    def waiting_bytes(self) -> int:
        """The bytes that were put and not released yet."""
        return self._control[_HEAD] - self._control[_TAIL]

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a record of frames with `size_bytes` of data fits, even if the memory wraps."""
        return self.waiting_bytes + 2 * (size_bytes + HEADER_BYTES + _PLACE_BYTES) <= self._frames_bytes

    def put(
        self,
        kind: int,
        place: bytes,
        count: int,
        ts_ns: int,
        number: int,
        data: Buffer,
        times: bytes = b"",
    ) -> bool:
        """Copy one record into the ring. Return False, with no record added, if there is no room.

        A record that would fit at the beginning of the memory, but not behind the last one, then leaves a
        filler behind that: else a large one would find no room in an empty ring for as long as nothing
        smaller came.
        """
        size, start = len(data), HEADER_BYTES + len(place) + len(times)
        total = (start + size + 7) & ~7
        head = self._head
        at = head % self.size_bytes
        left = self.size_bytes - at
        skip = left if left < total else 0
        memory, tail = self._data, self._control[_TAIL]
        most_bytes = self._frames_bytes if kind in _TRAFFIC else self._most_bytes
        if head + skip + total - tail > most_bytes:
            if total <= most_bytes < skip + total and head + skip - tail <= most_bytes:
                self._fill(at, skip)
            return False
        if skip:
            self._fill(at, skip)
            at, head = 0, self._head
        HEADER.pack_into(memory, at, total, kind, bool(times), len(place), count, size, ts_ns, number)
        memory[at + HEADER_BYTES : at + start] = place + times
        memory[at + start : at + start + size] = data
        self._head = self._control[_HEAD] = head + total
        return True

    def _fill(self, at: int, size_bytes: int) -> None:
        """Put a filler at the end of the memory, so that the next record begins at its start."""
        _START.pack_into(self._data, at, size_bytes, _SKIP)
        self._head = self._control[_HEAD] = self._head + size_bytes

    def written(self) -> int:
        """Return the head from the shared memory: it is exact once the gateway has ended."""
        return self._control[_HEAD]

    def records(self, head: int) -> Iterator[Record]:
        """Yield the records before `head` (from the gateway's last notice) that were not taken yet."""
        while self._read < head:
            at = self._read % self.size_bytes
            total, kind = _START.unpack_from(self._data, at)
            self._read += total
            if kind == _SKIP:
                continue
            _, _, is_timed, place, count, size, ts_ns, number = HEADER.unpack_from(self._data, at)
            start = at + HEADER_BYTES + place
            name = bytes(self._data[at + HEADER_BYTES : start])
            times = bytes(self._data[start : start + 8 * count]) if is_timed else b""
            start += len(times)
            yield Record(kind, name, count, ts_ns, number, self._data[start : start + size], times)

    @property
    def resume(self) -> tuple[int, int]:
        """The numbers of the next record and the next row, which the last `note` or `release` left."""
        return self._control[_NEXT_NUMBER], self._control[_NEXT_ROW]

    def release(self, next_number: int = 0, next_row: int = 0, give_back: bool = False) -> None:
        """Free the room of all records taken, and `note` the numbers. `give_back`: return its pages to the
        system, too."""
        if give_back and self._can_give_back:
            self._give_back(self._control[_TAIL] % self.size_bytes, self._read % self.size_bytes)
        self.note(next_number, next_row)
        self._control[_TAIL] = self._read

    def note(self, next_number: int, next_row: int) -> None:
        """Leave the numbers of the next record and the next row for a reader that takes over."""
        self._control[_NEXT_NUMBER], self._control[_NEXT_ROW] = next_number, next_row

    def _give_back(self, begin: int, end: int) -> None:
        """Give the system back the pages between two offsets, but not the last one, which is half read."""
        for first, last in [(begin, end)] if begin <= end else [(begin, self.size_bytes), (0, end)]:
            start, stop = (max(_PAGE, (_CONTROL_BYTES + place) // _PAGE * _PAGE) for place in (first, last))
            if start < stop:
                with suppress(OSError):  # a kernel that cannot: the pages stay
                    self._map.madvise(mmap.MADV_REMOVE, start, stop - start)

    def close(self) -> None:
        """Release this process's view. The memory is freed with its last descriptor."""
        for view in (self._control, self._data, self._view):
            view.release()
        self._map.close()
        os.close(self.descriptor)
