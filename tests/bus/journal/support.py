"""Journals for tests: on a simulated disk or on this one, and what is in them."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from bus.journal.files import Files
from bus.journal.journal import Group, Journal
from bus.wire.batch import Batch, from_payloads, payloads
from tests.bus.journal.disk import Disk

TRUNK = ("plant", "gw-a", "hall")
END = "gw-b"
KIB = 1 << 10


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def disk() -> Disk:
    """Return an empty simulated disk."""
    return Disk(Random(1))


def opened(files: Files | None, directory: str = "/j", **options: Any) -> Journal:
    """Return an open journal of one consumer, `END`, unless `options` say other things."""
    made: dict[str, Any] = {"bytes_max": 64 << 20, "consumers": [END], "clock": Clock(), **options}
    trunk = made.pop("made_for", TRUNK)
    journal = Journal(directory, trunk, made.pop("bytes_max"), files=files, **made)
    journal.open()
    return journal


def numbered(count: int, size: int = 60, first: int = 1) -> Sequence[bytes]:
    """Return messages that differ."""
    return [b"%08d" % number + bytes(size - 8) for number in range(first, first + count)]


def append(journal: Journal, bodies: Iterable[bytes], time_ms: int = 7, **options: Any) -> None:
    """Append messages, as one group."""
    journal.append([Group(from_payloads(bodies).keep(), time_ms, **options)])


def append_each(journal: Journal, count: int, size: int = 60) -> None:
    """Append so many messages that differ, in a record each."""
    for number in range(journal.next, journal.next + count):
        append(journal, numbered(1, size, number), time_ms=number)


def everything(journal: Journal, most_bytes: int = 5000) -> dict[int, bytes]:
    """Return all messages by number; fail if one is there twice, or out of order."""
    found, number = dict[int, bytes](), 1
    while number < journal.next:
        read = journal.read(number, most_bytes)
        for record in read.records:
            assert record.number >= number
            bodies = payloads(Batch(record.messages, record.count))
            found.update(zip(range(record.number, record.last + 1), bodies, strict=True))
            number = record.last + 1
        assert read.following >= number
        assert read.following > number or read.records
        number = read.following
    return found


def segments(files: Disk) -> list[str]:
    """Return the names of the segments of the journal on a simulated disk."""
    return sorted(name for name in files.listing("/j") if name.endswith(".log"))
