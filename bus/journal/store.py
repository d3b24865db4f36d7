"""The segments of a journal on disk: finding, beginning, appending, removing, and blocks of them."""

import os
from bisect import bisect_right
from collections.abc import Iterator
from errno import EIO
from typing import Final

from bus.journal.files import Files, read_all
from bus.journal.segment import START, Head, Segment, first_of, name_of, pack_head, parse_head

PAGE_BYTES: Final = 4096
_AGAIN_BYTES: Final = 1 << 20


class Store:
    """The segments of a directory, oldest first, that are of `journal` (None: of any, to read only).

    `strange` says of files what is wrong with them.
    """

    def __init__(self, files: Files, directory: str, journal: int | None) -> None:
        self._files, self._directory, self._journal = files, directory, journal
        self._file: int | None = None
        self._is_new = False
        self.segments = list[Segment]()
        self.strange = list[str]()

    def open(self, running_s: int) -> None:
        """Find the segments, by names, sizes and heads. Raises `OSError`."""
        self.segments = []
        for name, size in sorted(self._files.listing(self._directory).items()):
            first = first_of(name)
            if first is not None and (found := self._look(name, first, size, running_s)):
                self.segments.append(found)
        for one, following in zip(self.segments, self.segments[1:], strict=False):
            one.last, one.end_s = following.first - 1, min(one.end_s, following.begun_s)

    def _look(self, name: str, first: int, size: int, running_s: int) -> Segment | None:
        head = parse_head(read_all(self._files, self._path(name), START) or b"")
        if head and self._journal not in (None, head.journal):
            self.strange.append(f"{name} is of another journal ({head.journal:016x}): it is not read")
        elif head and head.first != first:
            self.strange.append(f"{name} is a copy of {name_of(head.first)}: it is not read")
        else:
            if not head:
                self.strange.append(f"{name} has a damaged head: its records are read")
            begun_s = min(head.begun_s, running_s) if head else running_s
            return Segment(first, first - 1, size, begun_s, running_s)
        return None

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(one.size for one in self.segments)

    @property
    def active(self) -> Segment | None:
        """The segment that is appended to."""
        return self.segments[-1] if self._file is not None and not self._is_new else None

    def is_there(self) -> bool:
        """Return whether the segment that is appended to still has its name, if there is one.

        What is written to a file without a name nobody will read. Raises `OSError`."""
        if self._file is None or self.active is None:
            return True
        return self._files.is_at(self._file, self._path(name_of(self.active.first)))

    def settle(self, goes_on: bool) -> None:
        """Put the last segment on disk, of which a process that was killed may have synced less than is read.

        It is written again where it stands, since a sync that failed leaves pages that no sync writes. If
        `goes_on`, it is appended to. A disk that takes nothing is left to the next `append`.
        """
        last = self.segments[-1]
        try:
            self._file = self._files.open(self._path(name_of(last.first)))
            for offset in range(0, last.size, _AGAIN_BYTES):
                self._files.pwrite(self._file, self._files.pread(self._file, _AGAIN_BYTES, offset), offset)
            self._files.sync(self._file)
            self._files.sync_directory(self._directory)
        except OSError:
            self.end()
        if not goes_on:
            self.end()

    def append(self, first: int, last: int, data: bytes, running_s: int) -> None:
        """Append records with the numbers from `first` to `last`, and sync. Raises `OSError`: nothing is
        appended then."""
        offset = self.segments[-1].size if self.active else START
        try:
            if self._file is None:
                self._begin(first, running_s)
            assert self._file is not None
            self._files.pwrite(self._file, data, offset)
        except OSError:
            self._cut(offset)
            raise
        self._sync(offset)
        self._grown(first, last, offset, len(data), running_s)

    def _begin(self, first: int, running_s: int) -> None:
        assert self._journal is not None
        head = Head(self._journal, first, running_s)
        self.segments = [one for one in self.segments if one.first < head.first]
        self._file, self._is_new = self._files.open(self._path(name_of(head.first)), create=True), True
        self._files.pwrite(self._file, pack_head(head), 0)

    def _sync(self, offset: int) -> None:
        assert self._file is not None
        try:
            self._files.sync(self._file)
            if self._is_new:
                self._files.sync_directory(self._directory)
        except OSError:
            self._cut(offset)
            self.end()  # what a failed sync left on disk nobody knows
            raise

    def _cut(self, offset: int) -> None:
        """Cut the segment back after a failure; end it if that fails as well, or if it was new."""
        if self._file is None:
            return
        try:
            self._files.truncate(self._file, offset)
        except OSError:
            self.end()
        if self._is_new:
            self.end()

    def _grown(self, first: int, last: int, offset: int, size: int, running_s: int) -> None:
        if self._is_new:
            self.segments.append(Segment(first, last, offset, running_s, running_s))
            self._is_new = False
        active = self.segments[-1]
        active.mark(first, offset)
        active.last, active.size, active.end_s = last, offset + size, running_s

    def end(self) -> None:
        """End the segment that is appended to: the next one is new."""
        if self._file is not None:
            file, self._file, self._is_new = self._file, None, False
            self._files.close(file)

    def remove(self, segment: Segment) -> None:
        """Remove a segment; end it, if it is appended to. Raises `OSError`."""
        if segment is self.active:
            self.end()
        self._files.unlink(self._path(name_of(segment.first)))
        self.segments.remove(segment)

    def index(self, number: int) -> int:
        """Return the index of the segment in which a number would be; -1 for one before all."""
        return bisect_right(self.segments, number, key=lambda one: one.first) - 1

    def overlapping(self, first: int, last: int) -> Iterator[Segment]:
        """Yield the segments that may have numbers from `first` to `last`."""
        for one in self.segments[max(0, self.index(first)) :]:
            if one.first > last:
                return
            yield one

    def block(self, segment: Segment, offset: int, size: int) -> bytes:
        """Return bytes of a segment, with zeros for what the disk does not return. Raises `OSError`."""
        size = max(0, min(size, segment.size - offset))
        try:
            file = self._files.open(self._path(name_of(segment.first)))
        except FileNotFoundError:
            return bytes(size)
        try:
            data = self._read(file, offset, size)
        finally:
            self._files.close(file)
        return data + bytes(size - len(data))

    def _read(self, file: int, offset: int, size: int) -> bytes:
        """Read; page by page, where the disk fails."""
        try:
            return self._files.pread(file, size, offset)
        except OSError as error:
            if error.errno != EIO:
                raise
        parts, at, end = list[bytes](), offset, offset + size
        while at < end:
            part = min(PAGE_BYTES - at % PAGE_BYTES, end - at)
            try:
                parts.append(self._files.pread(file, part, at).ljust(part, b"\0"))
            except OSError:
                parts.append(bytes(part))
            at += part
        return b"".join(parts)
