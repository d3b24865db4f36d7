"""Bounded queues of received messages, between the loop and the program."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import bus.tmq.wire as wire
from bus.ledger import Stats
from bus.tmq.wire import Tokens
from bus.wire.pattern import Pattern

_ROUTES = 4096  # patterns whose inboxes are remembered


class Item(NamedTuple):
    """One received message: the whole pattern that it was sent to, and its data."""

    pattern: Pattern
    data: bytes


class Inbox:
    """A queue of at most `limit` messages, first in first out; when full, the oldest is dropped and counted.

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
        """Return the oldest message; None if there is none within `timeout` seconds."""
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


Route = tuple[Pattern, tuple[Inbox, ...]]


class Inboxes:
    """The inboxes of a client, by subscription: each gets the messages whose pattern starts with its own."""

    def __init__(self) -> None:
        self._of: dict[Tokens, Inbox] = {}
        self._routes: dict[bytes, Route] = {}

    def add(self, tokens: Tokens, inbox: Inbox) -> None:
        self._of[tokens] = inbox
        self._routes.clear()

    def remove(self, tokens: Tokens) -> None:
        """Remove the inbox of a subscription. No error if there is none."""
        self._of.pop(tokens, None)
        self._routes.clear()

    def put(self, frames: Sequence[bytes]) -> int:
        """Put messages into their inboxes; return how many have none."""
        routes, taken, strays = self._routes, dict[Inbox, list[Item]](), 0
        for frame in frames:
            size = 4 + 4 * frame[1]
            pattern, inboxes = routes.get(frame[4:size]) or self._route(frame)
            for inbox in inboxes:
                taken.setdefault(inbox, []).append(Item(pattern, frame[size:]))
            strays += not inboxes
        for inbox, items in taken.items():
            inbox.put(items)
        return strays

    def _route(self, frame: bytes) -> Route:
        tokens = Pattern(*wire.tokens_of(frame))
        lengths = sorted({len(pattern) for pattern in self._of})
        found = (self._of.get(pattern) for pattern in wire.prefixes(tokens, lengths))
        route = tokens, tuple(dict.fromkeys(inbox for inbox in found if inbox is not None))
        if len(self._routes) >= _ROUTES:
            self._routes.clear()
        self._routes[frame[4 : 4 + 4 * frame[1]]] = route
        return route
