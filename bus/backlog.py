"""What waits for a stream socket that takes no more for now."""

import socket
from collections import deque
from itertools import islice

from bus.hub import Stats

_VECTORS = 64  # items in one sendmsg


class Backlog(deque[tuple[memoryview, int]]):
    """Runs of whole messages with their number, in order; `bytes` in all. Counts into `stats`.

    Derives from `deque` so that asking whether anything waits, as each send does, runs no Python.
    """

    __slots__ = ("_stats", "bytes")

    def __init__(self, stats: Stats) -> None:
        super().__init__()
        self._stats, self.bytes = stats, 0

    def put(self, view: memoryview, count: int) -> None:
        """Queue what is left of `count` messages; bounding it is the caller's."""
        size, stats = len(view), self._stats
        self.append((view, count))
        self.bytes += size
        stats.queued += count
        stats.queued_bytes += size

    def write(self, sock: socket.socket) -> None:
        """Give `sock` what it takes. Raises its `OSError`: one that would block too."""
        written = sock.sendmsg([view for view, _ in islice(self, _VECTORS)])
        stats = self._stats
        self.bytes -= written
        stats.queued_bytes -= written
        stats.sent_bytes += written
        while self and written >= len(self[0][0]):
            view, count = self.popleft()
            written -= len(view)
            stats.queued -= count
            stats.sent += count
        if written:
            view, count = self[0]
            self[0] = (view[written:], count)

    def drop(self, reason: str) -> None:
        """Nothing of it will be sent."""
        stats, count = self._stats, sum(count for _, count in self)
        if count:
            stats.drop(reason, count)
        stats.queued -= count
        stats.queued_bytes -= self.bytes
        self.bytes = 0
        self.clear()
