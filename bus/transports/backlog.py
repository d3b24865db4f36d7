"""The queue of a stream socket that takes no more for now."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from bus.ledger import Stats

_VECTORS = 64  # items in one sendmsg

Divide = Callable[[bytes], Iterator[tuple[int, bytes]]]
"""Yields the end of each message in the bytes of whole ones, and its body.

Messages with the same end go together: of these, all have begun or none."""


class Sending(Protocol):
    """A non-blocking socket, or what stands for one."""

    def sendmsg(self, buffers: list[memoryview], /) -> int: ...


class Backlog(deque[tuple[memoryview, int]]):
    """Runs of whole messages with their number, in order; `bytes` in all. Counts into `stats`.

    Derives from `deque` so that asking whether anything waits, as each send does, runs no Python.
    """

    __slots__ = ("_stats", "bytes")

    def __init__(self, stats: Stats) -> None:
        super().__init__()
        self._stats, self.bytes = stats, 0

    def put(self, view: memoryview, count: int) -> None:
        """Queue the rest of `count` messages. The caller bounds the size."""
        size, stats = len(view), self._stats
        self.append((view, count))
        self.bytes += size
        stats.queued += count
        stats.queued_bytes += size

    def write(self, sock: Sending) -> None:
        """Send as much as `sock` accepts without blocking. Raises `OSError`, including `BlockingIOError`."""
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

    def purge(self, reason: str, divide: Divide) -> list[bytes]:
        """Drop the messages that have not begun, and return them. What is no message stays.

        Each run must be what is left of whole messages that `divide` tells apart, to their end.
        """
        stats, messages = self._stats, list[bytes]()
        for view, count in self._emptied():
            begun, going, waiting = _divide(view, divide) if count else (view, 0, [])
            if begun:
                self.put(begun, going)
            stats.sent += count - going - len(waiting)
            messages += waiting
        stats.drop(reason, len(messages))
        return messages

    def drop(self, reason: str) -> None:
        """Drop all of it, counted by `reason`."""
        self._stats.drop(reason, sum(count for _, count in self._emptied()))

    def _emptied(self) -> list[tuple[memoryview, int]]:
        """Take all of it out of the queue."""
        stats, runs = self._stats, list(self)
        stats.queued -= sum(count for _, count in runs)
        stats.queued_bytes -= self.bytes
        self.bytes = 0
        self.clear()
        return runs


def _divide(view: memoryview, divide: Divide) -> tuple[memoryview, int, list[bytes]]:
    """Split the rest of a run: what is left of messages that have begun, their number, and the whole ones."""
    whole, begun, going = bytes(view.obj), memoryview(b""), 0
    written, start, stop, waiting = len(whole) - len(view), 0, 0, list[bytes]()
    for end, body in divide(whole):
        if end > stop:
            start, stop = stop, end
        if start >= written:
            waiting.append(body)
        elif end > written:
            begun, going = memoryview(whole[start:end])[written - start :], going + 1
    return begun, going, waiting
