"""The queue of a stream socket whose peer reads too slowly. Its bound is one of memory."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from math import inf
from typing import Protocol

from bus.ledger import Stats
from bus.wire.batch import Buffer

RUN_BYTES = 256
"""The cost of a run beside its bytes: the objects that hold it, and its place in the queue."""
SMALL_BYTES = 4096
_MERGED_BYTES = 64 * 1024
_MERGED_S = 0.5  # messages that came later get a run of their own, so that a run has one age
_VECTORS = 64  # runs in one sendmsg

Divide = Callable[[bytes], Iterator[tuple[int, bytes]]]
"""A function that yields the end of each message in the bytes of whole messages, and its body.

Messages with the same end go together: of these, all have begun or none.
"""


class Sending(Protocol):
    """A non-blocking socket, or an object with its `sendmsg`."""

    def sendmsg(self, buffers: list[memoryview], /) -> int: ...


class Run:
    """Whole messages: `count` of them in `data`, of which `written` bytes are sent.

    Count 0: bytes of no message. `data` is shared with other queues if it is `bytes`; a bytearray is ours,
    and more is added to it. `since_s`: when the first message was queued.
    """

    __slots__ = ("count", "data", "since_s", "written")

    def __init__(self, data: bytes | bytearray, written: int, count: int, since_s: float) -> None:
        self.data, self.written, self.count, self.since_s = data, written, count, since_s

    def __len__(self) -> int:
        return len(self.data) - self.written

    @property
    def cost(self) -> int:
        """The bytes of memory that the run takes, at most: a bytearray that grows has an eighth to spare."""
        size = len(self.data)
        return RUN_BYTES + (size if isinstance(self.data, bytes) else size + (size >> 3))


def cost_of(size: int) -> int:
    """Return the most that a run of `size` bytes costs by itself, in bytes."""
    return RUN_BYTES + size + (size >> 3 if size <= SMALL_BYTES else 0)


class Backlog(deque[Run]):
    """Runs of messages in order: `bytes` of them wait, and they take `cost` bytes of memory.

    Small runs are copied behind each other, so that many tiny messages cost little more than their bytes.
    Large ones are shared with the queues of other peers, and each is charged for them. Counts into `stats`.
    `divide` tells the messages in a run apart; without it, a run is sent, dropped and counted as one.

    Derives from `deque` so that asking whether anything waits, as each send does, runs no Python.
    """

    __slots__ = ("_divide", "_stats", "bytes", "cost")

    def __init__(self, stats: Stats, divide: Divide | None = None) -> None:
        super().__init__()
        self._stats, self._divide, self.bytes, self.cost = stats, divide, 0, 0

    def put(self, data: Buffer, count: int, written: int = 0, now: float = 0.0) -> None:
        """Queue `count` messages, of whose bytes `written` are sent. Copies lent and small data.

        The caller bounds the size. `now` in seconds, if the age of messages matters.
        """
        size, stats = len(data) - written, self._stats
        self.bytes += size
        stats.queued += count
        stats.queued_bytes += size
        last = self[-1] if self else None
        if last is not None and not written and _fits(last, data, count, now):
            self.cost -= last.cost
            last.data += data
            last.count += count
        else:
            own = bytearray(data) if len(data) <= SMALL_BYTES else bytes(data)
            self.append(last := Run(own, written, count, now))
        self.cost += last.cost

    def begin(
        self, data: bytes, count: int, written: int, room_bytes: int, reason: str, now: float = 0.0
    ) -> None:
        """Queue the rest of a message that has begun, and of those behind it as many as fit.

        `data` holds `count` messages, of whose bytes `written` are sent. Messages that are not queued are
        sent already, or dropped and counted by `reason`.
        """
        if self._divide is None:
            return self.put(data, count, written, now)
        ends = [end for end, _ in self._divide(data)]
        first = bisect_right(ends, written)
        start = ends[first - 1] if first else 0
        last = bisect_right(ends, max(ends[first], start + room_bytes - RUN_BYTES))
        self._stats.sent += first
        self._stats.drop(reason, count - last)
        return self.put(data[start : ends[last - 1]], last - first, written - start, now)

    def write(self, sock: Sending) -> None:
        """Send as much as `sock` accepts without blocking. Raises `OSError`, including `BlockingIOError`."""
        written = sock.sendmsg([memoryview(run.data)[run.written :] for run in islice(self, _VECTORS)])
        stats = self._stats
        self.bytes -= written
        stats.queued_bytes -= written
        stats.sent_bytes += written
        while self and written >= len(self[0]):
            run = self.popleft()
            written -= len(run)
            self.cost -= run.cost
            stats.queued -= run.count
            stats.sent += run.count
        if written:
            self[0].written += written

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages that have not begun, and return them. Bytes of no message stay."""
        stats, messages = self._stats, list[bytes]()
        for run in self._taken(len(self)):
            done, begun, waiting = _split(run, self._divide)
            stats.sent += done
            messages += waiting
            if begun is not None:
                self.put(begun.data, begun.count, begun.written, begun.since_s)
        stats.drop(reason, len(messages))
        return messages

    def shed(self, reason: str, before_s: float = inf) -> None:
        """Drop the messages that have not begun, as `purge` does, at a cost of runs and not of messages.

        With `before_s`, drop only messages that were queued before that time.
        """
        stats, rest = self._stats, list[Run]()
        for run in self._taken(sum(1 for _ in takewhile(lambda run: run.since_s < before_s, self))):
            whole = run.count and not run.written
            done, begun, waiting = (0, None, []) if whole else _split(run, self._divide)
            stats.sent += done
            stats.drop(reason, run.count if whole else len(waiting))
            rest += [] if begun is None else [begun]
        for begun in reversed(rest):
            self._put_first(begun)

    def drop(self, reason: str) -> None:
        """Drop all of it, counted by `reason`."""
        stats = self._stats
        for run in self._taken(len(self)):
            done = _split(run, self._divide)[0] if run.written else 0  # only the first run has begun
            stats.sent += done
            stats.drop(reason, run.count - done)

    def _taken(self, runs: int) -> list[Run]:
        """Return the first `runs` runs, taken out of the queue."""
        taken = [self.popleft() for _ in range(runs)]
        for run in taken:
            self._count(run, -1)
        return taken

    def _put_first(self, run: Run) -> None:
        self.appendleft(run)
        self._count(run, 1)

    def _count(self, run: Run, sign: int) -> None:
        """Add the counts of a run to all sums, or take them away."""
        stats, size = self._stats, sign * len(run)
        stats.queued += sign * run.count
        stats.queued_bytes += size
        self.bytes += size
        self.cost += sign * run.cost


def _fits(last: Run, data: Buffer, count: int, now: float) -> bool:
    """Return whether messages may be copied behind the last run, or bytes of no message behind their like."""
    alike = bool(count) == bool(last.count) and isinstance(last.data, bytearray)
    small = len(data) <= SMALL_BYTES and len(last.data) + len(data) <= _MERGED_BYTES
    return alike and small and now - last.since_s <= _MERGED_S


def _split(run: Run, divide: Divide | None) -> tuple[int, Run | None, list[bytes]]:
    """Return the number of sent messages of a run, a run of those that have begun, and the others."""
    if divide is None or not run.count:
        return 0, run, []
    whole, done, begun, going, waiting = bytes(run.data), 0, None, 0, list[bytes]()
    start = stop = 0
    for end, body in divide(whole):
        if end > stop:
            start, stop = stop, end
        if start >= run.written:
            waiting.append(body)
        elif end > run.written:
            going += 1
            begun = Run(whole[start:end], run.written - start, going, run.since_s)
        else:
            done += 1
    return done, begun, waiting
