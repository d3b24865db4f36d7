"""Notes: named sets of numbers in a file that only grows, until it is written anew.

Each entry is a line, `CRC FIRST LAST "NAME"`, behind two newlines, so that a torn one spoils no other, and
each is written twice, so that a damaged one costs nothing. The set of a name has the numbers of all its
entries; a count of `n` is the set of the numbers from 1 to `n`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final
from zlib import crc32

from bus.journal.files import Files, read_all, replace
from bus.journal.ranges import U64_MAX, RangeSet

ACKNOWLEDGED, RECEIVED, COUNTS = "acknowledged", "received", "counts"
"""The files of a journal: what consumers have, what other journals sent, and what was counted."""
GONE: Final = ""
"""The name, among those of consumers, of the numbers that are not kept any more."""
GROWN_BYTES: Final = 64 * 1024
BYTES_MAX: Final = 256 << 20
_ENTRY: Final = re.compile(rb'([0-9a-f]{8}) ([0-9]{1,20}) ([0-9]{1,20}) ("[ -~]*")')


def _entry(name: str, first: int, last: int) -> bytes:
    text = f"{first} {last} {json.dumps(name)}".encode()
    return b"\n\n%08x %b" % (crc32(text), text)


@lru_cache(maxsize=256)
def _name(quoted: bytes) -> str:
    return str(json.loads(quoted))


def _parse_entry(line: bytes) -> tuple[str, int, int] | None:
    """Return the name and the range of an entry; None if it is damaged."""
    match = _ENTRY.fullmatch(line)
    if not match or int(match[1], 16) != crc32(line[9:]):
        return None
    try:
        name, first, last = _name(match[4]), int(match[2]), int(match[3])
    except ValueError:
        return None
    return (name, first, last) if first <= last <= U64_MAX else None


def parse(data: bytes) -> tuple[dict[str, RangeSet], int]:
    """Return the sets in a file by name, and how many lines are damaged."""
    found, damaged = dict[str, RangeSet](), 0
    for line in data.split(b"\n"):
        if not line:
            continue
        if entry := _parse_entry(line):
            name, first, last = entry
            if name not in found:
                found[name] = RangeSet()
            found[name].add(first, last)
        else:
            damaged += 1
    return found, damaged


class Notes:
    """The notes of one file. `sets` are by name; `damaged` counts lines that could not be read at `open`.

    `add` only notes: `write` appends what is noted, and `sync` puts it on disk.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files, self._path = files, path
        self._file: int | None = None
        self._size = self._compact_bytes = 0
        self._new = dict[str, RangeSet]()
        self._is_synced = True
        self.sets = dict[str, RangeSet]()
        self.damaged = 0

    def open(self) -> None:
        """Read the file, and write it anew: a process that was killed may have synced less than is read.

        If the disk takes nothing, the next `write` tries again. Raises `OSError` if it cannot be read.
        """
        data = read_all(self._files, self._path, BYTES_MAX)
        self.sets, self.damaged = parse(data or b"")
        self._is_synced = False
        with suppress(OSError):
            self._rewrite()

    def of(self, name: str) -> RangeSet:
        """Return the set of a name, which is made if it is missing."""
        held = self.sets.get(name)
        if held is None:
            held = self.sets[name] = RangeSet()
        return held

    def add(self, name: str, first: int, last: int, most: int = 0) -> bool:
        """Add numbers to the set of a name, as `RangeSet.add` does; note the range that they are now in."""
        held = self.of(name)
        if held.covers(first, last):
            return True
        added = held.add(first, last, most)
        if added:
            self._new.setdefault(name, RangeSet()).add(first, last)
            self._is_synced = False
        return added

    def write(self) -> None:
        """Append what is new. Raises `OSError`: the next call writes it again.

        A file that was deleted or moved away is written anew.
        """
        if not self._new and self._file is not None:
            return
        data = 2 * b"".join(self._entries())
        if self._file is None or self._size + len(data) > max(GROWN_BYTES, 2 * self._compact_bytes):
            self._rewrite()
            return
        self._files.pwrite(self._file, data, self._size)
        self._size += len(data)
        if not self._files.is_at(self._file, self._path):
            self._rewrite()
        self._new.clear()

    def _entries(self) -> Iterator[bytes]:
        """Yield an entry for each range that grew, with all that is in it now."""
        for name, new in self._new.items():
            held = self.of(name)
            for one in dict.fromkeys(held.range_of(first) for first, _ in new):
                yield _entry(name, *one)

    def sync(self) -> None:
        """Put all that is noted on disk. Raises `OSError`: the next call writes the whole file anew."""
        self.write()
        if self._is_synced or self._file is None:
            return
        try:
            self._files.sync(self._file)
        except OSError:
            self.close()  # what a failed sync left on disk nobody knows
            raise
        self._is_synced = True

    def remove(self, names: Iterable[str]) -> None:
        """Remove the sets of names from the file. Raises `OSError`."""
        if [self.sets.pop(name) for name in names if name in self.sets]:
            self._is_synced = False
            self._rewrite()

    def _rewrite(self) -> None:
        self.close()
        data = b"".join(_entry(name, *one) for name, held in self.sets.items() for one in held)
        data += data
        replace(self._files, self._path, data)
        self._file = self._files.open(self._path)
        self._size = self._compact_bytes = len(data)
        self._new.clear()
        self._is_synced = True

    def close(self) -> None:
        """Close the file, without writing."""
        if self._file is not None:
            self._files.close(self._file)
            self._file = None
