"""Messages in files, first in, first out, within a bound of bytes. It blocks: use it in one thread.

A directory has segments, `0000000001.spool` and so on: a run of records, each a length u32, a CRC-32 u32 and
the message, big-endian. `done` says how far the broker has acknowledged: segment u64, offset u64, CRC-32 u32.
A segment is deleted when all of it is acknowledged. `lock` is locked while the spool is open.
"""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from bus.wire.envelope import MESSAGE_BYTES_MAX

_RECORD, _DONE = Struct(">II"), Struct(">QQI")
_CHUNK_BYTES = 64 * 1024
_SEGMENTS = 8  # the least number of segments within the bound


class Position(NamedTuple):
    """A position in the files: the number of a segment, and an offset in it."""

    segment: int
    offset: int


class TurnResult(NamedTuple):
    """The result of one turn: the number of messages written, the messages read, and the error, or "".

    `left` messages are not acknowledged. `full` says that the bound left no room for some.
    """

    written: int
    read: list[bytes]
    left: int
    full: bool = False
    fault: str = ""


class Spool:
    """The files of one spool, open from the start. Raises `OSError` if they cannot be used.

    `waiting` is the number of messages that were not acknowledged, `damaged` the number of places where
    records were unreadable and skipped.
    """

    def __init__(self, directory: str, bound_bytes: int, sync: bool = False) -> None:
        self._directory, self._bound, self._sync = Path(directory), bound_bytes, sync
        self._segment_bytes = bound_bytes // _SEGMENTS
        self._outstanding: deque[Position] = deque()  # the ends of records that were read, in order
        self._writing = self._reading = self._done_file = -1
        self.waiting = self.damaged = 0
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            self._open()
        except OSError:
            self.close()
            raise

    def _open(self) -> None:
        try:
            flock(self._lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise OSError(f"{self._directory} is in use by another process") from None
        self._sizes = {
            int(file.stem): file.stat().st_size for file in sorted(self._directory.glob("*.spool"))
        }
        self._done_file = os.open(self._directory / "done", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._done = self._at = self._first(self._read_done())
        for number in [number for number in self._sizes if number < self._done.segment]:
            self._delete(number)
        self._last = max(self._sizes, default=self._done.segment)
        self.waiting = sum(1 for _ in self._records())
        self._seek(self._done)
        self._begin()  # never append to a segment that a killed process may have left half written

    def _first(self, done: Position) -> Position:
        """Return the position of the first message that is not acknowledged."""
        left = [number for number in self._sizes if number >= done.segment]
        if not left or done.segment in left:
            return done
        return Position(min(left), 0)

    def _read_done(self) -> Position:
        data = os.pread(self._done_file, _DONE.size, 0)
        if len(data) == _DONE.size:
            segment, offset, crc = _DONE.unpack(data)
            if crc == crc32(data[:16]):
                return Position(segment, offset)
        return Position(min(self._sizes, default=1), 0)

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:010}.spool"

    def _begin(self) -> None:
        """Begin a new segment."""
        if self._writing >= 0:
            os.close(self._writing)
        self._last += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._writing = os.open(self._path(self._last), flags, 0o640)
        self._sizes[self._last] = 0

    def _delete(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)
        del self._sizes[number]

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(self._sizes.values())

    def turn(self, new: list[bytes], acknowledged: int, rewind: bool, wanted: int) -> TurnResult:
        """Forget acknowledged messages, write new ones as far as the bound allows, and read the next ones.

        `acknowledged` counts from the oldest that was read and not yet forgotten. After `rewind` all that is
        left is read again.
        """
        written, read, fault = 0, list[bytes](), ""
        try:
            self._forget(acknowledged)
            if rewind:
                self._outstanding.clear()
                self._seek(self._done)
            if acknowledged:
                self._write_done()
            written = self._write(new)
            for message in self._records(wanted):
                read.append(message)
            if len(read) < wanted:
                self.waiting = len(self._outstanding)  # damaged records cannot be waited for
        except OSError as error:
            fault = error.strerror or str(error)
        return TurnResult(written, read, self.waiting, written < len(new) and not fault, fault)

    def _forget(self, count: int) -> None:
        for _ in range(count):
            self._done = self._outstanding.popleft()
        self.waiting -= count

    def _write_done(self) -> None:
        """Store the acknowledged position, and delete the segments before it."""
        head = _DONE.pack(*self._done, 0)[:16]
        os.pwrite(self._done_file, head + crc32(head).to_bytes(4, "big"), 0)
        for number in [number for number in self._sizes if number < self._done.segment]:
            self._delete(number)

    def _write(self, new: list[bytes]) -> int:
        """Write the messages that fit the bound, and return their number."""
        if new and self._sizes[self._last] >= self._segment_bytes:
            self._begin()
            self._skip_done()
        room, records = self._bound - self.size_bytes, list[bytes]()
        for message in new:
            room -= _RECORD.size + len(message)
            if room < 0:
                break
            records.append(_RECORD.pack(len(message), crc32(message)) + message)
        if records:
            self._append(b"".join(records))
            self.waiting += len(records)
        return len(records)

    def _skip_done(self) -> None:
        """Delete the segments before this one if all of their messages are acknowledged."""
        if not self._outstanding and self._at == self._done and not self.waiting:
            for number in [number for number in self._sizes if number < self._last]:
                self._delete(number)
            self._done = Position(self._last, 0)
            self._seek(self._done)

    def _append(self, data: bytes) -> None:
        start = self._sizes[self._last]
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._writing, left) :]
            if self._sync:
                os.fdatasync(self._writing)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._writing, start)
            raise
        self._sizes[self._last] = start + len(data)

    def _records(self, wanted: int | None = None) -> Iterator[bytes]:
        """Yield the next messages, at most `wanted`, and continue after them."""
        chunk, begin, count = b"", self._at.offset, 0
        while wanted is None or count < wanted:
            found = _record(chunk, self._at.offset - begin)
            if found is None:
                chunk, begin = self._load(), self._at.offset
                found = _record(chunk, 0)
            if found is None:
                if not self._next():
                    return
                chunk, begin = b"", self._at.offset
                continue
            segment, offset = self._at
            self._at = Position(segment, offset + _RECORD.size + len(found))
            if wanted is not None:
                self._outstanding.append(self._at)
            count += 1
            yield found

    def _load(self) -> bytes:
        """Return the bytes at the reading position."""
        if self._reading < 0:
            with suppress(FileNotFoundError):
                self._reading = os.open(self._path(self._at.segment), os.O_RDONLY | os.O_CLOEXEC)
        return b"" if self._reading < 0 else os.pread(self._reading, _CHUNK_BYTES, self._at.offset)

    def _next(self) -> bool:
        """Go on with the next segment; return False if there is none. Count an unread rest as damaged."""
        later = [number for number in self._sizes if number > self._at.segment]
        if not later:
            return False
        if self._at.offset < self._sizes.get(self._at.segment, 0):
            self.damaged += 1
        self._seek(Position(min(later), 0))
        return True

    def _seek(self, position: Position) -> None:
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1
        self._at = position

    def close(self) -> None:
        """Close the files. Idempotent."""
        for file in (self._writing, self._reading, self._done_file, self._lock):
            if file >= 0:
                os.close(file)
        self._writing = self._reading = self._done_file = self._lock = -1


def _record(chunk: bytes, offset: int) -> bytes | None:
    """Return the message of the record at an offset; None if there is no complete and valid one."""
    start = offset + _RECORD.size
    if len(chunk) < start:
        return None
    size, crc = _RECORD.unpack_from(chunk, offset)
    message = chunk[start : start + size]
    if size > MESSAGE_BYTES_MAX or len(message) < size or crc32(message) != crc:
        return None
    return message
