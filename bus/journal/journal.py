"""The journal: messages on disk, numbered from 1 without holes, until all who are to have them have them.

One thread calls it, and each call blocks. A directory has `journal.json` (whose journal it is), `lock`,
segments, and notes: `acknowledged` (what each consumer has, and what is gone), `received` (what came from
other journals) and `counts`.

Age is counted in running time, which is noted: a clock that steps changes nothing, and time in which no
process has the journal open does not count.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from bus.errors import words_of
from bus.journal.errors import JournalError, JournalFull
from bus.journal.files import Files, SystemFiles
from bus.journal.identity import Identity, Trunk, identify
from bus.journal.notes import ACKNOWLEDGED, COUNTS, GONE, RECEIVED, Notes
from bus.journal.ranges import U64_MAX, Range, RangeSet
from bus.journal.reading import Reader
from bus.journal.record import Origin, Record, encode
from bus.journal.scan import ending
from bus.journal.segment import START, Segment, first_of
from bus.journal.store import Store
from bus.wire.batch import Buffer

FULL, EXPIRED, DAMAGED = "journal full", "expired", "damaged"
"""Why a consumer does not get a message."""
ENDS_MAX: Final = 64
RANGES_MAX: Final = 4096
"""Ranges of numbers that are remembered of one consumer, or of one other journal."""
JOURNALS_MAX: Final = 4096
"""Other journals that are remembered."""
SEGMENT_BYTES: Final = 256 * 1024, 8 << 20
"""The least and the most bytes of a segment."""
_SEGMENTS: Final = 64
_RUNNING: Final = "running_s"
Policy = Literal["oldest", "newest"]


class Group(NamedTuple):
    """Messages to append: a batch's bytes, and when they were first journaled (ms since 1970). `origin` is
    the journal and the number that the first of them got elsewhere, None for those that begin here. `ends`
    has one bit for each consumer that is due them (`Journal.index`); None: all are."""

    data: Buffer
    time_ms: int
    origin: Origin | None = None
    ends: int | None = None


class Appended(NamedTuple):
    """A result of `append`: the number of the first message, and its records."""

    first: int
    records: list[Record]


class Read(NamedTuple):
    """A result of `read`: records, and the number after them. Of the messages in between, `damaged` cannot be
    read, and `gone` are not kept any more."""

    records: list[Record]
    following: int
    damaged: int
    gone: int


class Backlog(NamedTuple):
    """The messages that a consumer has not acknowledged, their bytes in the journal (shared out evenly within
    a segment), and when the oldest was first journaled, in ms since 1970; None without any."""

    messages: int
    bytes: int
    oldest_ms: int | None


class Journal:
    """The journal in a directory. `made_for` is the trunk that it belongs to, `consumers` are those that are
    to have each message. At most `bytes_max` bytes of segments are kept, and nothing that is older than
    `age_s` (0: for ever). A full journal drops its oldest segment, or takes nothing, by `policy`.

    `losses` counts, for each consumer and reason, the messages that it did not get; `refused` those that were
    not taken. `clock` is a monotonic time in seconds.
    """

    def __init__(
        self,
        directory: str,
        made_for: Trunk,
        bytes_max: int,
        age_s: int = 0,
        consumers: Iterable[str] = (),
        policy: Policy = "oldest",
        files: Files | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.directory, self._made_for = directory, made_for
        self.bytes_max, self.age_s, self.policy = bytes_max, age_s, policy
        self._names = list(dict.fromkeys(consumers))
        self._files, self._clock, self._wall = files or SystemFiles(), clock, wall
        self._lock: int | None = None
        notes = (
            Notes(self._files, os.path.join(directory, name)) for name in (ACKNOWLEDGED, RECEIVED, COUNTS)
        )
        self._acknowledged, self._received, self._counts = notes
        self._began_s = self._base_s = 0
        self._oldest = dict[int, int | None]()
        self.id = 0
        self.refused = 0
        self.next = 1
        """The number of the next message."""

    # -- opening and closing

    def open(self) -> None:
        """Open the journal. Raises `JournalError`, which says what to do; nothing is open then."""
        try:
            self._files.make_directory(self.directory)
            self._take()
            self._find()
        except JournalError:
            self._release()
            raise
        except OSError as error:
            self._release()
            raise JournalError(
                f"the journal {self.directory} cannot be opened: {words_of(error)}: see that the directory "
                "can be written, or give another one"
            ) from error

    def _take(self) -> None:
        try:
            self._lock = self._files.lock(os.path.join(self.directory, "lock"))
        except BlockingIOError:
            raise JournalError(
                f"the journal {self.directory} is open in another process: stop it, or give another directory"
            ) from None
        is_empty = not any(map(first_of, self._files.listing(self.directory)))
        identity = identify(
            self._files,
            self.directory,
            self._made_for,
            is_empty,
            lambda: Identity(secrets.randbits(64) or 1, self._made_for, int(self._wall())),
        )
        self.id = identity.id

    def _find(self) -> None:
        for notes in (self._acknowledged, self._received, self._counts):
            notes.open()
        self._began_s, self._base_s = int(self._clock()), self._counts.of(_RUNNING).count
        self._store = Store(self._files, self.directory, self.id)
        self._store.open(self._base_s)
        self._reader = Reader(self._store)
        self._end()
        self._begin_consumers()
        for segment in list(self._store.segments):
            self._remove_if_done(segment)

    def _end(self) -> None:
        """Find the next number, and what the last segment has of other journals."""
        known = max(held.last for held in (RangeSet([(0, 0)]), *self._acknowledged.sets.values()))
        segments = self._store.segments
        if segments:
            last = segments[-1]
            end = ending(self._store, last)
            last.last = end.last
            for journal, first, until in end.origins:
                self._note(journal, first, until)
            is_sound = end.is_whole and end.last >= max(known, last.first)
            self._store.settle(is_sound and last.size < self.segment_bytes // 2)
            known = max(known, end.last)
        self.next = known + 1

    def _begin_consumers(self) -> None:
        sets = self._acknowledged.sets
        self._acknowledged.remove([name for name in sets if name != GONE and name not in self._names])
        for name in self._names:
            self.add(name)
        self._acknowledged.sync()
        self._counts.sync()

    def close(self) -> None:
        """Put all on disk, and let others have the journal. Raises `OSError`; it is closed all the same."""
        try:
            if self._lock is not None:
                self._note_running()
                self._sync_notes()
        finally:
            self._release()

    def _release(self) -> None:
        if hasattr(self, "_store"):
            self._store.end()
        for notes in (self._acknowledged, self._received, self._counts):
            notes.close()
        if self._lock is not None:
            self._files.close(self._lock)
            self._lock = None

    # -- writing

    @property
    def segment_bytes(self) -> int:
        """The bytes at which a segment is ended; one call of `append` may go beyond."""
        least, most = SEGMENT_BYTES
        return min(max(self.bytes_max // _SEGMENTS, least), most)

    def append(self, groups: Sequence[Group]) -> Appended:
        """Append messages, and sync them. What came from other journals is remembered at the same time.

        Raises `OSError` or `JournalFull`: none of them is in the journal then. Raises `RecordError` for data
        that are no messages.
        """
        number, records = self.next, list[Record]()
        for group in _joined(groups):
            records += encode(group.data, number, group.time_ms, group.origin, group.ends)
            number = records[-1].last + 1 if records else number
        if records:
            data = b"".join(record.encoded for record in records)
            self._make_room(len(data), number - self.next)
            self._end_segment_if_due()
            if not self._store.active:
                self._received.sync()  # the next start looks for what is not noted in the last segment only
            self._store.append(self.next, number - 1, data, self.running_s)
        first, self.next = self.next, number
        self._appended(records)
        return Appended(first, records)

    def _appended(self, records: list[Record]) -> None:
        for record in records:
            if record.origin:
                journal, first = record.origin
                self._note(journal, first, first + record.count - 1)
            if record.ends is not None:
                self._settle(record)

    def _settle(self, record: Record) -> None:
        """Note for whom a record is not."""
        assert record.ends is not None
        for name in self._names:
            if not record.ends >> self.index(name) & 1:
                self._acknowledged.add(name, record.number, record.last)

    def _make_room(self, size: int, count: int) -> None:
        new = size + START
        if self._store.size + new <= self.bytes_max:
            return
        if self.policy == "newest" or new > self.bytes_max:
            self.refused += count
            raise JournalFull(
                f"the journal {self.directory} is full ({self._store.size} of {self.bytes_max} bytes): "
                f"{count} messages are not taken"
            )
        while self._store.segments and self._store.size + new > self.bytes_max:
            self._drop(self._store.segments[0], FULL)

    def _end_segment_if_due(self) -> None:
        active = self._store.active
        if not active:
            return
        is_old = self.age_s and self.running_s - active.begun_s > self.age_s // _SEGMENTS
        if active.size >= self.segment_bytes or is_old:
            self._store.end()

    # -- what other journals numbered

    def remember(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """Remember, on disk, numbers of other journals: each a journal, the first and the last.

        Raises `OSError`: do not acknowledge them; the next call tries again."""
        for journal, first, last in ranges:
            self._note(journal, first, last)
        self._received.sync()

    def _note(self, journal: int, first: int, last: int) -> None:
        name, sets = f"{journal:016x}", self._received.sets
        if name not in sets and len(sets) >= JOURNALS_MAX:
            self._received.remove([next(iter(sets))])
        while not self._received.add(name, first, last, RANGES_MAX):
            sets[name].close_smallest()

    def known(self, journal: int) -> RangeSet:
        """Return the numbers of another journal that this one had: a set to read, not to change."""
        return self._received.sets.get(f"{journal:016x}") or RangeSet()

    def all_known(self) -> dict[int, RangeSet]:
        """Return the numbers of all other journals that this one had, as they are now."""
        return {int(name, 16): held.copy() for name, held in self._received.sets.items()}

    # -- reading

    def read(self, number: int, most_bytes: int, until: int = U64_MAX) -> Read:
        """Return records from `number` to before `until`, of some `most_bytes`; go on with `following`.

        Damaged messages are counted in `losses`, and given up. Raises `OSError`."""
        records, following = self._reader.read(number, most_bytes, min(until, self.next))
        damaged = gone = 0
        for first, last in _between(number, records, following):
            lost = self._of(GONE).missing(first, last)
            missing = sum(stop - start + 1 for start, stop in lost)
            damaged, gone = damaged + missing, gone + last - first + 1 - missing
            for start, stop in lost:
                self._lose(start, stop, DAMAGED)
                self._acknowledged.add(GONE, start, stop)
        return Read(records, following, damaged, gone)

    def _lose(self, first: int, last: int, reason: str) -> None:
        """Count, and note, that consumers do not get the messages with these numbers."""
        for name in self._names:
            if count := self._of(name).count_missing(first, last):
                key = f"{reason}/{name}"
                self._counts.add(key, 1, self._counts.of(key).count + count)
                self._acknowledged.add(name, first, last)

    @property
    def losses(self) -> dict[str, dict[str, int]]:
        """The messages that each consumer did not get, by reason, since the journal was made."""
        return {
            name: {reason: self._counts.of(f"{reason}/{name}").count for reason in (FULL, EXPIRED, DAMAGED)}
            for name in self._names
        }

    # -- giving up

    def acknowledge(self, consumer: str, ranges: Iterable[Range]) -> int:
        """Note that a consumer has the numbers in `ranges`; return how many of them are new.

        Segments that all have are removed. Raises `OSError`: what is noted is noted."""
        before = self._of(consumer).count
        touched = list[Range]()
        for first, last in ranges:
            low, high = max(first, 0), min(last, self.next - 1)
            if low <= high and not self._of(consumer).covers(low, high):
                self._acknowledged.add(consumer, low, high, RANGES_MAX)
                touched.append((low, high))
        self._acknowledged.write()
        for low, high in touched:
            for segment in list(self._store.overlapping(low, high)):
                self._remove_if_done(segment)
        return self._of(consumer).count - before

    def acknowledged(self, consumer: str) -> RangeSet:
        """Return the numbers that a consumer has, or does not get any more: a set to read, not to change."""
        return self._of(consumer)

    def _of(self, name: str) -> RangeSet:
        return self._acknowledged.of(name)

    def _remove_if_done(self, segment: Segment) -> None:
        if segment is self._store.active or segment.last < segment.first:
            return
        if all(self._of(name).covers(segment.first, segment.last) for name in self._names):
            self._remove(segment)

    def _remove(self, segment: Segment) -> None:
        self._acknowledged.add(GONE, 0, 0)
        self._acknowledged.add(GONE, segment.first, segment.last)
        self._sync_notes()
        self._store.remove(segment)

    def _drop(self, segment: Segment, reason: str) -> None:
        """Remove a segment that some consumers have not acknowledged."""
        self._lose(segment.first, segment.last, reason)
        self._remove(segment)

    def _sync_notes(self) -> None:
        for notes in (self._received, self._acknowledged, self._counts):
            notes.sync()

    def add(self, consumer: str) -> None:
        """Begin to keep for another consumer, from the oldest message that is kept. Raises `OSError`."""
        if consumer not in self._names:
            self._names.append(consumer)
        if consumer not in self._acknowledged.sets:
            segments = self._store.segments
            for first, last in ((0, (segments[0].first if segments else self.next) - 1), *self._of(GONE)):
                self._acknowledged.add(consumer, first, last)
        self.index(consumer)
        self._acknowledged.write()

    def forget(self, consumer: str) -> None:
        """Keep nothing any more for a consumer. Raises `OSError`."""
        if consumer in self._names:
            self._names.remove(consumer)
        self._acknowledged.remove([consumer])
        for segment in list(self._store.segments):
            self._remove_if_done(segment)

    def index(self, consumer: str) -> int:
        """Return the bit of a consumer in `ends`, which stays the same over restarts."""
        key = f"end/{consumer}"
        if key not in self._counts.sets:
            taken = {held.count - 1 for name, held in self._counts.sets.items() if name.startswith("end/")}
            free = [at for at in range(ENDS_MAX) if at not in taken]
            if not free:
                raise JournalError(f"the journal {self.directory} has more than {ENDS_MAX} ends: {consumer}")
            self._counts.add(key, 1, free[0] + 1)
        return self._counts.of(key).count - 1

    def backlog(self, consumer: str) -> Backlog:
        """Return what a consumer has not acknowledged. Raises `OSError`."""
        held = self._of(consumer)
        messages = self.next - held.count
        if not messages:
            return Backlog(0, 0, None)
        size = sum(_share(segment, held) for segment in self._store.segments)
        return Backlog(messages, size, self._time(held.first_missing(0)))

    def _time(self, number: int) -> int | None:
        if number not in self._oldest:
            record = self._reader.first(number)
            self._oldest = {number: record.time_ms if record else None}
        return self._oldest[number]

    # -- time

    @property
    def running_s(self) -> int:
        """The time that processes had this journal open, in seconds."""
        return self._base_s + max(0, int(self._clock()) - self._began_s)

    def tick(self) -> None:
        """Drop what is too old, and note the time. Call it once in some seconds. Raises `OSError`."""
        self._note_running()
        while self.age_s and (segments := self._store.segments):
            if self.running_s - segments[0].end_s <= self.age_s:
                break
            self._drop(segments[0], EXPIRED)

    def _note_running(self) -> None:
        if self.running_s > self._counts.of(_RUNNING).count:
            self._counts.add(_RUNNING, 1, self.running_s)
            self._counts.write()


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Return the same messages in fewer groups: what begins here at one time, for the same ends, is one."""
    made, parts = list[Group](), list[list[Buffer]]()
    for group in groups:
        if made and group.origin is None and made[-1][1:] == group[1:]:
            parts[-1].append(group.data)
        else:
            made.append(group)
            parts.append([group.data])
    return [
        group if len(some) == 1 else group._replace(data=b"".join(some))
        for group, some in zip(made, parts, strict=True)
    ]


def _between(number: int, records: list[Record], following: int) -> list[Range]:
    """Return the ranges of numbers, from `number` to before `following`, that are in none of the records."""
    found = list[Range]()
    for record in records:
        if number < record.number:
            found.append((number, record.number - 1))
        number = record.last + 1
    if number < following:
        found.append((number, following - 1))
    return found


def _share(segment: Segment, held: RangeSet) -> int:
    """Return how many bytes of a segment a consumer has not acknowledged."""
    total = segment.last - segment.first + 1
    return segment.size * held.count_missing(segment.first, segment.last) // total if total > 0 else 0
