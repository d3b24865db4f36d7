"""The sending half of one end of a durable trunk: what of a journal goes to it, and when. Pure.

Its journal is read by others: `Sender` says from where, and gets the records. Numbers are those of messages.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from bridges.durable.ages import age_of
from bridges.durable.pace import Pace
from bridges.durable.wire import BACKLOG, LIVE, REPLAYED, carried
from bus.journal.ranges import Range, RangeSet

FOR_OTHERS: Final = "for others"
"""The reason of messages that were found in the journal, and are not for this end."""
ISLANDS_MAX: Final = 64
"""New records that overtake others, and do not follow each other, at most: an end that hears of more takes
what lies between for known (`bus.journal.memory`)."""
CHUNKS_MAX: Final = 4
"""Chunks of a backlog that are taken and not acknowledged, at most: the end still writes them."""


class Kept(NamedTuple):
    """A record of the journal: its bytes, its first and its last number, and when it was first journaled.

    `why` it is not sent to this end, as a reason of the ledger; "" if it is.
    """

    record: bytes
    first: int
    last: int
    time_ms: int
    why: str = ""


class Backlog(NamedTuple):
    """A part of the backlog: the messages that carry it, and how many of the journal's were left out, by
    reason; of those for other ends only what was found at the start."""

    messages: list[bytes]
    left: dict[str, int]


class Sender:
    """The state of one end: what it gets of a journal.

    `acknowledged` are the numbers that it has, or that were never for it. `following` is the number of the
    journal's next message. `share` of the time is the backlog's; with `is_fifo` new messages wait for it.
    `is_replayed(number)` tells whether a message was sent again at a takeover. While `is_up` the end is
    connected, and has said what it has.
    """

    def __init__(
        self,
        acknowledged: RangeSet,
        following: int,
        share: float,
        is_fifo: bool,
        is_replayed: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self.acknowledged, self.following = acknowledged, following
        self._found_last, self._is_replayed = following - 1, is_replayed
        self._share, self._is_fifo = 1.0 if is_fifo else share, is_fifo
        self.end()

    def found(self) -> int:
        """Return how many messages of the journal the end has not acknowledged, as a ledger begins with them.

        Those for other ends among them are told by `read`.
        """
        self._found_last = self.following - 1
        return self.acknowledged.count_missing(1, self._found_last)

    def begin(self, ranges: Iterable[Range]) -> int:
        """Begin a connection with an end that has `ranges`. Return how many of them are new to us."""
        self.end()
        some = list(ranges)
        self.is_up, self._islands = True, len(some)
        return self._gain(some)

    def end(self) -> None:
        """End a connection: what was not acknowledged is sent again on the next one."""
        self.is_up, self._islands = False, 0
        self._given = self.acknowledged.copy()  # and what was sent on this connection
        self._pace, self._chunks = Pace(self._share), deque[int]()  # the last numbers of those on the way

    def _gain(self, ranges: Iterable[Range]) -> int:
        gained = 0
        for first, last in ranges:
            for start, stop in self.acknowledged.missing(max(1, first), min(last, self.following - 1)):
                gained += stop - start + 1
                self._skip(start, stop)
        return gained

    def heard(self, ranges: Iterable[Range], now_s: float) -> int:
        """Take an acknowledgement; return of how many messages."""
        gained = self._gain(ranges)
        while self._chunks and self._chunks[0] in self.acknowledged:
            self._chunks.popleft()
        if not self._chunks:  # an older end says only this
            self._pace.done(now_s)
        return gained

    def taken(self, last: int, now_s: float) -> None:
        """Note that an end has taken what it was sent of the backlog, up to a number."""
        if self._chunks and last >= self._chunks[-1]:
            self._pace.done(now_s)

    def committed(self, records: Iterable[Kept], now_ms: int, room_bytes: int) -> Iterator[bytes]:
        """Take new records; yield the messages that carry those of them that leave at once.

        What `room_bytes` do not hold becomes backlog.
        """
        for kept in records:
            waits = not self.is_up or (self._is_fifo and self.first_missing() < kept.first)
            self.following = kept.last + 1
            if kept.why == FOR_OTHERS and kept.first - 1 not in self._given:
                continue  # left to `read`: each would be a range of its own, however long the end is away
            if kept.why:
                self._skip(kept.first, kept.last)
            elif not waits and len(kept.record) <= room_bytes and self._may_overtake(kept.first):
                room_bytes -= len(kept.record)
                yield self._give(LIVE, kept, now_ms)

    def _may_overtake(self, first: int) -> bool:
        """Tell whether a record that begins with `first` may leave before those that the end lacks."""
        if first - 1 in self._given:
            return True
        if self._islands >= ISLANDS_MAX <= len(self._given):
            return False
        self._islands += 1
        return True

    def _give(self, lane: int, kept: Kept, now_ms: int) -> bytes:
        self._given.add(kept.first, kept.last)
        since = max(1, self._given.begin_of(kept.first))
        if self._is_replayed(kept.first):
            lane |= REPLAYED
        return carried(lane, age_of(now_ms, kept.time_ms), since, kept.record)

    def _skip(self, first: int, last: int) -> None:
        """Note numbers that the end has, or that are not for it."""
        self.acknowledged.add(first, last)
        self._given.add(first, last)

    def forget(self, first: int) -> None:
        """Note that the journal has nothing any more before the number `first`."""
        if not self.acknowledged.covers(1, first - 1):
            self._skip(1, first - 1)

    def first_missing(self) -> int:
        """Return the first number that the end was not given; `following` if there is none."""
        return self._given.first_missing(1)

    @property
    def has_all(self) -> bool:
        """Whether the end has all that is in the journal for it."""
        return self.acknowledged.first_missing(1) >= self.following

    def wait_s(self, now_s: float) -> float | None:
        """Return how long to wait before the backlog is read on; None if it is not before the next news."""
        if not self.is_up or self.first_missing() >= self.following or len(self._chunks) >= CHUNKS_MAX:
            return None
        return self._pace.wait_s(now_s)

    @property
    def chunk_bytes(self) -> int:
        """The bytes to read of the backlog, from `first_missing` on."""
        return self._pace.chunk_bytes

    def read(self, records: Iterable[Kept], until: int, now_ms: int, now_s: float) -> Backlog:
        """Take what was read of the backlog, up to before the number `until`.

        Numbers in no record are not in the journal any more, or cannot be read: they are given up.
        """
        messages, left, at, sent = list[bytes](), dict[str, int](), self.first_missing(), 0
        for kept in records:
            self._give_up(at, kept.first - 1)
            at = kept.last + 1
            if kept.why:
                last = min(kept.last, self._found_last) if kept.why == FOR_OTHERS else kept.last
                left[kept.why] = left.get(kept.why, 0) + self._given.count_missing(kept.first, last)
                self._skip(kept.first, kept.last)
            elif not self._given.covers(kept.first, kept.last):
                messages.append(self._give(BACKLOG, kept, now_ms))
                sent = kept.last
        self._give_up(at, until - 1)
        if messages:
            self._chunks.append(sent)
            self._pace.begin(now_s)
        return Backlog(messages, left)

    def _give_up(self, first: int, last: int) -> None:
        for start, stop in self._given.missing(first, last):
            self._skip(start, stop)
