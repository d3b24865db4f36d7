"""Messages that wait for a bus: bounded in bytes and in age, and the pipe's ledger kept; time is given."""

from collections import deque

from bridges.codecs.extent import message_bytes
from bus.hub import Stats


class AgeQueue:
    """First in, first out. A message counts as queued until it is settled, also after it was taken.

    What waits longer than `age_s` is dropped, reason `stale`: a command must not come out after the stop.
    """

    def __init__(self, stats: Stats, queue_bytes: int, age_s: float) -> None:
        self._stats, self._queue_bytes, self.age_s = stats, queue_bytes, age_s
        self._waiting: deque[tuple[float, bytes]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, now: float, messages: list[bytes]) -> None:
        """Queue what fits and can be cut out of padding at the other end; drop the rest, counted."""
        self.expire(now)
        stats = self._stats
        for message in messages:
            if not message or message_bytes(message) != len(message):
                stats.drop("malformed")
            elif stats.queued_bytes + len(message) > self._queue_bytes:
                stats.drop("queue full")
            else:
                self._waiting.append((now, message))
                stats.queued += 1
                stats.queued_bytes += len(message)

    def expire(self, now: float) -> None:
        """Drop what has waited too long."""
        waiting, oldest = self._waiting, now - self.age_s
        while waiting and waiting[0][0] < oldest:
            self.settle(len(waiting.popleft()[1]), "stale")

    def take(self, now: float) -> tuple[float, bytes] | None:
        """The next message that is not stale, and when it came; the taker settles it."""
        self.expire(now)
        return self._waiting.popleft() if self._waiting else None

    def settle(self, size: int, dropped: str = "") -> None:
        """A message taken, of `size` bytes, was sent; or dropped for a reason."""
        stats = self._stats
        stats.queued -= 1
        stats.queued_bytes -= size
        if dropped:
            return stats.drop(dropped)
        stats.sent += 1
        stats.sent_bytes += size
        return None

    def clear(self, reason: str) -> None:
        """Drop all that waits."""
        while self._waiting:
            self.settle(len(self._waiting.popleft()[1]), reason)
