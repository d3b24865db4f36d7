"""What waits for a serial line: encoded messages in order, bounded in bytes and in age, each drop counted."""

from collections import deque
from collections.abc import Sequence

from bridges.codecs.uart import MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, encode, wire_bytes_max
from bus.hub import Stats


class Outbox:
    """A queue whose head may be on the line in part: what has begun is finished, and never stale.

    `age_s`: what has waited longer is dropped as `stale`; None keeps it for as long as it takes.
    """

    __slots__ = ("_age_s", "_begun", "_claimed", "_queue", "_queue_bytes", "_stats")

    def __init__(self, stats: Stats, queue_bytes: int, age_s: float | None = None) -> None:
        self._stats, self._queue_bytes, self._age_s = stats, queue_bytes, age_s
        self._queue: deque[tuple[bytes, bytes, float]] = deque()  # as encoded, the message, when it came
        self._begun = 0  # bytes of the head that the line has already
        self._claimed = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, messages: Sequence[bytes], now: float) -> None:
        """Queue what fits below `queue_bytes`; count the rest as `queue full`, `oversize` or `empty`."""
        self.expire(now)
        stats = self._stats
        for message in messages:
            if not MESSAGE_BYTES_MIN <= len(message) <= MESSAGE_BYTES_MAX:
                stats.drop("oversize" if message else "empty")
            elif stats.queued_bytes + wire_bytes_max(len(message)) > self._queue_bytes:
                stats.drop("queue full")
            else:
                coded = encode(message)
                self._queue.append((coded, message, now))
                stats.queued += 1
                stats.queued_bytes += len(coded)

    def expire(self, now: float) -> None:
        """Drop what has grown stale; the order is that of age, so only the front is looked at."""
        if self._age_s is None:
            return
        begun = self._queue.popleft() if self._begun or self._claimed else None
        oldest = now - self._age_s
        while self._queue and self._queue[0][2] < oldest:
            self._forget(self._queue.popleft()[0])
            self._stats.drop("stale")
        if begun:
            self._queue.appendleft(begun)

    def head(self, room: int) -> bytes:
        """The next bytes for the line, at most `room`; ends within or behind a message."""
        parts, size = [], -self._begun
        for coded, _, _ in self._queue:
            parts.append(coded)
            size += len(coded)
            if size >= room:
                break
        return b"".join(parts)[self._begun : self._begun + room]

    def claim(self) -> bytes:
        """The first message, as encoded; from now on it counts as begun."""
        self._claimed = True
        return self._queue[0][0]

    def settle(self, written: int) -> list[bytes]:
        """The line took so many more bytes; the messages that this completes."""
        done, written = [], written + self._begun
        while self._queue and written >= len(self._queue[0][0]):
            coded, message, _ = self._queue.popleft()
            written -= len(coded)
            self._forget(coded)
            self._stats.sent += 1
            self._stats.sent_bytes += len(coded)
            done.append(message)
        self._begun = written
        self._claimed = self._claimed and not done
        return done

    def _forget(self, coded: bytes) -> None:
        self._stats.queued -= 1
        self._stats.queued_bytes -= len(coded)

    def close(self) -> None:
        """Count what is left as `closed`."""
        if self._queue:
            self._stats.drop("closed", len(self._queue))
            self._queue.clear()
        self._claimed = False
        self._begun = self._stats.queued = self._stats.queued_bytes = 0
