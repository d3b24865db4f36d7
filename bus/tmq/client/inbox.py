"""A bounded queue of received messages, between the loop and the program."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bus.ledger import Stats
from bus.wire.pattern import Pattern


class Item(NamedTuple):
    """One message: the whole pattern that it was sent to, and its data."""

    pattern: Pattern
    data: bytes


class Inbox:
    """At most `limit` messages, first in first out; when full the oldest is dropped and counted.

    Any thread may put and take. `stats`: offered = taken (`sent`) + dropped + queued, always.
    """

    def __init__(self, limit: int = 4096, on_filled: Callable[[], None] | None = None) -> None:
        self.limit = limit
        self.stats = Stats()
        self._items: deque[Item] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._takers = 0
        self._on_filled = on_filled

    def put(self, items: Sequence[Item]) -> None:
        stats = self.stats
        with self._changed:
            self._items.extend(items)
            over = len(self._items) - self.limit
            if over > 0:
                for _ in range(over):
                    self._items.popleft()
                stats.drop("queue full", over)
            stats.offered += len(items)
            stats.queued = len(self._items)
            if self._takers:
                self._changed.notify_all()
        if self._on_filled is not None:
            self._on_filled()

    def take(self, timeout: float = 0.0) -> Item | None:
        """Take the oldest message; None if there is none within `timeout` seconds."""
        with self._changed:
            if not self._items and timeout > 0:
                self._takers += 1
                try:
                    self._changed.wait_for(self._items.__len__, timeout)
                finally:
                    self._takers -= 1
            if not self._items:
                return None
            self.stats.queued -= 1
            self.stats.sent += 1
            return self._items.popleft()
