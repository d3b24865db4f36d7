"""The journal: messages on disk, numbered from 1 without holes, until all who are to have them have them.

One thread calls it, and each call blocks. A directory has `journal.json` (whose journal it is), `lock`,
segments, a `reserve` of room, and notes: `acknowledged` (what each consumer has, and what is gone),
`received` (what came from other journals) and `counts`.

Age is counted in running time, which is noted: a clock that steps changes nothing, and time in which no
process has the journal open does not count.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from errno import ENOSPC
from typing import Final

from bus.errors import words_of
from bus.journal.consumers import DAMAGED, EXPIRED, FULL, Consumers
from bus.journal.errors import JournalError, JournalGone
from bus.journal.files import Files, SystemFiles
from bus.journal.groups import Appended, Backlog, Group, Read, between, encoded
from bus.journal.identity import Trunk, claimed, is_there, lock
from bus.journal.memory import Memory
from bus.journal.ranges import U64_MAX, Range, RangeSet
from bus.journal.reading import Reader
from bus.journal.record import Record
from bus.journal.removal import Policy, Removal
from bus.journal.reserve import Reserve
from bus.journal.scan import ending
from bus.journal.segment import share
from bus.journal.store import Store

__all__ = ["DAMAGED", "EXPIRED", "FULL", "Appended", "Backlog", "Group", "Journal", "Policy", "Read"]

SEGMENT_BYTES: Final = 256 * 1024, 8 << 20
"""The least and the most bytes of a segment."""
WRITE_S: Final = 0.1
"""Acknowledgements are written that often: a process that is killed sends again what came later."""
_SEGMENTS, _SEGMENTS_MIN = 64, 8


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
        self.bytes_max, self.age_s, self._policy = bytes_max, age_s, policy
        self._files, self._clock, self._wall = files or SystemFiles(), clock, wall
        self._lock: int | None = None
        self.id = 0
        self._consumers = Consumers(self._files, directory, consumers)
        self._memory = Memory(self._files, directory)
        self._reserve = Reserve(self._files, directory)
        self._begin_reading()
        self._began_s = self._base_s = 0
        self._written_s = 0.0
        self.next = 1
        """The number of the next message."""

    def open(self) -> None:
        """Open the journal. Raises `JournalError`, which says what to do; nothing is open then."""
        try:
            self._files.make_directory(self.directory)
            self._lock = lock(self._files, self.directory)
            self.id = claimed(self._files, self.directory, self._made_for, self._wall)
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

    def _find(self) -> None:
        self._consumers.open()
        self._memory.open()
        self._began_s, self._base_s = int(self._clock()), self._consumers.running_s
        self._begin_reading()
        self._store.open(self._base_s)
        self._end()
        self._consumers.begin(self.first)
        self._with_room(lambda: self._removal.done(list(self._store.segments)))
        self._reserve.take()

    def _begin_reading(self) -> None:
        self._store = Store(self._files, self.directory, self.id)
        self._reader = Reader(self._store)
        self._removal = Removal(
            self.directory, self._store, self._consumers, self._memory, self.bytes_max, self._policy,
            self._reserve,
        )  # fmt: skip

    @property
    def first(self) -> int:
        """The number of the first message that is kept; that of the next one if none is."""
        return self._store.segments[0].first if self._store.segments else self.next

    def _end(self) -> None:
        """Find the next number, and what the last segment has of other journals."""
        known = self._consumers.highest
        if self._store.segments:
            last = self._store.segments[-1]
            end = ending(self._store, last)
            last.last = end.last
            for journal, first, until in end.origins:
                self._memory.add(journal, first, until)
            is_sound = end.is_whole and end.last >= max(known, last.first)
            self._store.settle(is_sound and last.size < self.segment_bytes // 2)
            known = max(known, end.last)
        self.next = known + 1

    def close(self) -> None:
        """Put all on disk, and let others have the journal. Raises `OSError`; it is closed all the same."""
        try:
            if self._lock is not None:
                self._consumers.note(self.running_s)
                self._consumers.sync()
                self._memory.sync()
        finally:
            self._release()

    def _release(self) -> None:
        self._store.end()
        self._consumers.close()
        self._memory.close()
        if self._lock is not None:
            self._files.close(self._lock)
            self._lock = None

    @property
    def segment_bytes(self) -> int:
        """The bytes at which a segment is ended; one call of `append` may go beyond."""
        least, most = SEGMENT_BYTES
        return min(max(self.bytes_max // _SEGMENTS, min(least, self.bytes_max // _SEGMENTS_MIN)), most)

    def append(self, groups: Sequence[Group]) -> Appended:
        """Append messages, and sync them. What came from other journals is remembered at the same time.

        Raises `OSError` or `JournalFull`: none of them is in the journal then. Raises `RecordError` for data
        that are no messages.
        """
        first, records = self.next, encoded(groups, self.next)
        if records:
            data, last = b"".join(record.encoded for record in records), records[-1].last
            self._removal.make_room(len(data), last - first + 1)
            self._with_room(lambda: self._put(first, last, data))
            self.next = last + 1
            self._appended(records)
        return Appended(first, records)

    def _with_room(self, call: Callable[[], None]) -> None:
        """Call, and once more if the disk is full and there is something on it that all have."""
        try:
            call()
        except OSError as error:
            if error.errno != ENOSPC or not self._removal.free():
                raise
            call()

    def _put(self, first: int, last: int, data: bytes) -> None:
        self._end_segment_if_due()
        if not self._store.active:
            self._memory.sync()  # the next start looks for what is not noted in the last segment only
        self._store.append(first, last, data, self.running_s)

    def check(self) -> None:
        """Raise `JournalGone` if the journal's files were deleted or moved away: what is appended then goes
        to a file without a name, which no restart finds. Raises `OSError` if nobody can say."""
        is_open = self._lock is not None and is_there(self._files, self.directory, self._lock)
        if not (is_open and self._store.is_there()):
            raise JournalGone(
                f"the journal {self.directory} was deleted or moved away while it was open, with "
                f"{self.unacknowledged:,} messages: put it back, or start this gateway again with an empty "
                "one"
            )

    def try_out(self, size_bytes: int) -> None:
        """Raise `OSError` if the disk does not take messages of so many bytes, or as `check` does."""
        self.check()
        self._reserve.try_out(size_bytes)

    @property
    def unacknowledged(self) -> int:
        """The messages that are kept for the consumer that lacks most."""
        consumers = self._consumers
        return max((self.next - consumers.of(name).count for name in consumers.names), default=0)

    def _appended(self, records: list[Record]) -> None:
        for record in records:
            if record.origin:
                journal, first = record.origin
                self._memory.add(journal, first, first + record.count - 1)
            if record.ends is not None:
                self._settle(record)

    def _settle(self, record: Record) -> None:
        """Note for whom a record is not."""
        assert record.ends is not None
        for name in self._consumers.names:
            if not record.ends >> self._consumers.index(name) & 1:
                self._consumers.acknowledge(name, record.number, record.last)

    def _end_segment_if_due(self) -> None:
        active = self._store.active
        if not active:
            return
        is_old = self.age_s and self.running_s - active.begun_s > self.age_s // _SEGMENTS
        if active.size >= self.segment_bytes or is_old:
            self._store.end()

    def remember(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """Remember, on disk, numbers of other journals: each a journal, the first and the last.

        Raises `OSError`: do not acknowledge them; the next call tries again."""
        self._memory.remember(ranges)

    def known(self, journal: int) -> RangeSet:
        """Return the numbers of another journal that this one had: a set to read, not to change."""
        return self._memory.known(journal)

    @property
    def assumed(self) -> int:
        """The numbers of other journals that are taken for known although they never came (`Memory`)."""
        return self._memory.assumed

    def all_known(self) -> dict[int, RangeSet]:
        """Return the numbers of all other journals that this one had, as they are now."""
        return self._memory.all_known()

    def read(self, number: int, most_bytes: int, until: int = U64_MAX) -> Read:
        """Return records from `number` to before `until`, of some `most_bytes`; go on with `following`.

        Damaged messages are counted in `losses`, and given up. Raises `OSError`."""
        records, following = self._reader.read(number, most_bytes, min(until, self.next))
        if self._consumers.gone.last >= number:  # what an append that failed left may have their numbers
            records = [one for one in records if not self._consumers.gone.covers(one.number, one.last)]
        damaged = gone = 0
        for first, last in between(number, records, following):
            lost = self._consumers.gone.missing(first, last)
            missing = sum(stop - start + 1 for start, stop in lost)
            damaged, gone = damaged + missing, gone + last - first + 1 - missing
            for start, stop in lost:
                self._consumers.lose(start, stop, DAMAGED)
        return Read(records, following, damaged, gone)

    @property
    def refused(self) -> int:
        """The messages that were not taken since it was opened."""
        return self._removal.refused

    @property
    def losses(self) -> dict[str, dict[str, int]]:
        """The messages that each consumer did not get, by reason, since the journal was made."""
        return self._consumers.losses

    def acknowledge(self, consumer: str, ranges: Iterable[Range]) -> int:
        """Note that a consumer has the numbers in `ranges`; return how many of them are new.

        Segments that all have are removed. Raises `OSError`: what is noted is noted."""
        held = self._consumers.of(consumer)
        before, touched = held.count, list[Range]()
        for first, last in ranges:
            low, high = max(first, 0), min(last, self.next - 1)
            if low <= high and not held.covers(low, high):
                self._consumers.acknowledge(consumer, low, high)
                touched.append((low, high))
        self._with_room(lambda: self._note(touched))
        return held.count - before

    def _note(self, touched: Iterable[Range]) -> None:
        """Note what consumers have, from time to time, and remove segments that all have."""
        for low, high in touched:
            self._removal.done(list(self._store.overlapping(low, high)))
        if self._clock() - self._written_s >= WRITE_S:
            self._consumers.write()
            self._written_s = self._clock()

    def acknowledged(self, consumer: str) -> RangeSet:
        """Return the numbers that a consumer has, or does not get any more: a set to read, not to change."""
        return self._consumers.of(consumer)

    def add(self, consumer: str) -> None:
        """Begin to keep for another consumer, from the oldest message that is kept. Raises `OSError`."""
        self._consumers.add(consumer, self.first)
        self._consumers.sync()

    def forget(self, consumer: str) -> None:
        """Keep nothing any more for a consumer. Raises `OSError`."""
        self._consumers.forget(consumer)
        self._removal.done(list(self._store.segments))

    def empty(self, consumer: str) -> int:
        """Drop all that a consumer has not; return how many messages. Raises `OSError`."""
        count = self._consumers.empty(consumer, self.next - 1)
        self._removal.done(list(self._store.segments))
        return count

    def index(self, consumer: str) -> int:
        """Return the bit of a consumer in `ends`, which stays the same over restarts."""
        return self._consumers.index(consumer)

    def backlog(self, consumer: str) -> Backlog:
        """Return what a consumer has not acknowledged. Raises `OSError`."""
        held = self._consumers.of(consumer)
        messages = self.next - held.count
        if not messages:
            return Backlog(0, 0, None)
        size = sum(share(segment, held) for segment in self._store.segments)
        return Backlog(messages, size, self._reader.time_ms(held.first_missing(0)))

    @property
    def size(self) -> int:
        """The bytes of its segments."""
        return self._store.size

    @property
    def running_s(self) -> int:
        """The time that processes had this journal open, in seconds."""
        return self._base_s + max(0, int(self._clock()) - self._began_s)

    def tick(self) -> None:
        """Drop what is too old, and note the time. Call it once in some seconds. Raises `OSError`."""
        self._removal.expire(self.running_s, self.age_s)  # first: a full disk takes no note before
        self._with_room(lambda: self._consumers.note(self.running_s))
