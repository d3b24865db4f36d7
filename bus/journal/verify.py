"""A look at a journal without its lock: what is there, what is damaged, and the records themselves.

A process may be writing it at the same time: the last record may then look torn.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bus.journal.errors import JournalError
from bus.journal.files import Files, SystemFiles, read_all
from bus.journal.identity import Identity, read_identity
from bus.journal.notes import ACKNOWLEDGED, BYTES_MAX, COUNTS, GONE, RECEIVED, parse
from bus.journal.ranges import U64_MAX, Range, RangeSet
from bus.journal.reading import Reader
from bus.journal.record import Record
from bus.journal.scan import pieces
from bus.journal.segment import Segment, name_of
from bus.journal.store import Store

_BLOCK_BYTES: Final = 1 << 20
_NOTES: Final = {
    ACKNOWLEDGED: "some messages may be sent again",
    RECEIVED: "some messages may come twice",
    COUNTS: "some counts may be too low",
}


@dataclass
class Looked:
    """One segment: its records and messages, `missing` numbers, messages that another segment has too
    (`doubled`), bytes of no record (`damaged_bytes`), and those at its end (`torn_bytes`)."""

    name: str
    first: int
    size: int
    last: int = 0
    records: int = 0
    messages: int = 0
    missing: list[Range] = field(default_factory=list)
    doubled: int = 0
    damaged_bytes: int = 0
    torn_bytes: int = 0

    @property
    def damaged(self) -> int:
        """The messages that cannot be read."""
        return sum(last - first + 1 for first, last in self.missing)

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with it, a line each."""
        for first, last in self.missing:
            yield f"{self.name}: {_messages(first, last)} damaged or missing"
        if self.doubled:
            yield f"{self.name}: {self.doubled} messages that the next segment has too: they are not read"
        if self.damaged_bytes:
            yield f"{self.name}: {self.damaged_bytes} bytes of damaged records"
        if self.torn_bytes:
            yield (
                f"{self.name}: {self.torn_bytes} bytes at the end are no whole record: a write was cut off, "
                "or is under way"
            )


@dataclass
class Verified:
    """A journal: its identity, if it can be read, its segments, the messages that each consumer lacks, and
    `faults`, a line each."""

    identity: Identity | None
    segments: list[Looked]
    lacks: dict[str, int]
    faults: list[str]


def _messages(first: int, last: int) -> str:
    return f"message {first} is" if first == last else f"messages {first} to {last} are"


def verify(directory: str, files: Files | None = None) -> Verified:
    """Look at all of a journal. Raises `OSError`."""
    files, faults = files or SystemFiles(), list[str]()
    identity = identity_of(files, directory, faults)
    store = store_of(files, directory, identity)
    held = {name: notes_of(files, directory, name, faults) for name in _NOTES}[ACKNOWLEDGED]
    gone = held.pop(GONE, RangeSet())
    segments = [_look(store, segment, gone) for segment in store.segments]
    faults += store.strange
    faults += (fault for looked in segments for fault in looked.faults())
    last = segments[-1].last if segments else gone.last
    lacks = {name: RangeSet([(0, 0), *one]).count_missing(1, last) for name, one in held.items()}
    return Verified(identity, segments, lacks, faults)


def notes_of(files: Files, directory: str, name: str, faults: list[str]) -> dict[str, RangeSet]:
    """Return the sets of a file of notes; a fault is added to `faults`. Raises `OSError`."""
    held, damaged = parse(read_all(files, os.path.join(directory, name), BYTES_MAX) or b"")
    if damaged:
        faults.append(f"{name}: damaged lines ({damaged}), of most of which there is a copy: {_NOTES[name]}")
    return held


def identity_of(files: Files, directory: str, faults: list[str]) -> Identity | None:
    """Return whose journal a directory is, None if that cannot be read; a fault is added to `faults`."""
    try:
        return read_identity(files, directory)
    except JournalError as error:
        faults.append(str(error))
        return None


def store_of(files: Files, directory: str, identity: Identity | None) -> Store:
    """Return the segments of a journal, to be read. Raises `OSError`."""
    store = Store(files, directory, identity.id if identity else None)
    store.open(0)
    if store.segments:
        store.segments[-1].last = U64_MAX
    return store


def _look(store: Store, segment: Segment, gone: RangeSet) -> Looked:
    looked, following = Looked(name_of(segment.first), segment.first, segment.size), segment.first
    for piece in pieces(store, segment):
        looked.damaged_bytes += looked.torn_bytes
        looked.torn_bytes = piece.damaged
        for record in piece.records:
            looked.records += 1
            looked.messages += record.count
            looked.doubled += max(0, record.last - max(segment.last, record.number - 1))
            looked.missing += gone.missing(following, min(record.number - 1, segment.last))
            following = record.last + 1
    looked.last = segment.last if segment.last < U64_MAX else following - 1
    looked.missing += gone.missing(following, looked.last)
    return looked


def records(directory: str, files: Files | None = None) -> Iterator[Record]:
    """Yield all records of a journal that can be read, in order. Raises `OSError`."""
    files = files or SystemFiles()
    store = store_of(files, directory, identity_of(files, directory, []))
    reader, number = Reader(store), 1
    while True:
        found, number = reader.read(number, _BLOCK_BYTES)
        if not found:
            return
        yield from found
