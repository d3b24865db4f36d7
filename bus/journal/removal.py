"""The removal of segments: those that all consumers have, those that are too old, and those in the way."""

from collections.abc import Iterable
from errno import ENOSPC
from typing import Literal

from bus.journal.consumers import EXPIRED, FULL, Consumers
from bus.journal.errors import JournalFull
from bus.journal.memory import Memory
from bus.journal.reserve import Reserve
from bus.journal.segment import START, Segment
from bus.journal.store import Store

Policy = Literal["oldest", "newest"]


class Removal:
    """The removal of segments of `store`, which has at most `bytes_max`, where `directory` is the journal's.

    A full journal drops its oldest segment, or takes nothing, by `policy`; `refused` counts what it refuses.
    """

    def __init__(
        self,
        directory: str,
        store: Store,
        consumers: Consumers,
        memory: Memory,
        bytes_max: int,
        policy: Policy,
        reserve: Reserve,
    ) -> None:
        self._directory, self._store, self._consumers, self._memory = directory, store, consumers, memory
        self._bytes_max, self._policy = bytes_max, policy
        self._reserve = reserve
        self.refused = 0

    def make_room(self, size: int, count: int) -> None:
        """Make room for so many bytes, of `count` messages. Raises `OSError`, or `JournalFull`: they are not
        to be taken."""
        new = size + START
        if self._store.size + new <= self._bytes_max:
            return
        self._end_done()
        is_kept = self._policy == "newest" and self._store.size + new > self._bytes_max
        if is_kept or new > self._bytes_max:
            self.refused += count
            raise JournalFull(
                f"the journal {self._directory} is full ({self._store.size} of {self._bytes_max} bytes): "
                f"{count} messages are not taken"
            )
        while self._store.segments and self._store.size + new > self._bytes_max:
            self._remove(self._store.segments[0], FULL)

    def _end_done(self) -> None:
        """End and remove the segment that is written, if all have what is in it."""
        active = self._store.active
        if active and self._consumers.have(active.first, active.last):
            self._store.end()
            self.done([active])

    def free(self) -> bool:
        """Free a full disk of what all consumers have; return if there was anything. Raises `OSError`."""
        done = [one for one in self._store.segments if self._have(one)]
        if not done:
            return False
        if self._store.active in done:
            self._store.end()
        self.done(done)
        return True

    def _have(self, segment: Segment) -> bool:
        return segment.first <= segment.last and self._consumers.have(segment.first, segment.last)

    def done(self, segments: Iterable[Segment]) -> None:
        """Remove those segments that all consumers have, but for the one being written. Raises `OSError`."""
        for segment in segments:
            if segment is not self._store.active and self._have(segment):
                self._remove(segment)

    def expire(self, running_s: int, age_s: int) -> None:
        """Remove the segments that are older than `age_s` (0: for ever). Raises `OSError`."""
        while age_s and (segments := self._store.segments):
            if running_s - segments[0].end_s <= age_s:
                break
            self._remove(segments[0], EXPIRED)

    def _remove(self, segment: Segment, reason: str = "") -> None:
        """Remove a segment, of which consumers lose what they have not, for a reason. A full disk is no
        obstacle: what is noted is written when there is room, except about the last segment."""
        try:
            self._note_gone(segment, reason)
        except OSError as error:
            if error.errno != ENOSPC:
                raise
            if segment is self._store.segments[-1]:
                return self._remove_last(segment, reason)
        return self._store.remove(segment)

    def _remove_last(self, segment: Segment, reason: str) -> None:
        """Remove the last segment of a full disk. Notes about it go to disk before, in place of the reserve:
        else its numbers would be given again."""
        self._reserve.release()
        try:
            self._note_gone(segment, reason)
            self._store.remove(segment)
        finally:
            self._reserve.take()

    def _note_gone(self, segment: Segment, reason: str) -> None:
        """Note that nobody gets a segment any more, for a reason, or because all have it."""
        if reason:
            self._consumers.lose(segment.first, segment.last, reason)
        self._memory.sync()
        self._consumers.give_up(segment.first, segment.last)
