"""A thread that gives what waits to somebody outside, so that nobody there ever holds up a gateway."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Generic, TypeVar

from bus.errors import words_of
from bus.hub import Hub, State
from bus.ledger import Stats
from bus.text import plain

PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0

T = TypeVar("T")


class Refused(Exception):
    """The other end does not take what it was given, and would not later; `count` of it, None for all."""

    def __init__(self, why: str, count: int | None = None) -> None:
        super().__init__(why)
        self.count = count


class Outbox(Generic[T]):
    """A queue of at most `waiting_max`, and the thread that calls `give` with the next ones, one after the
    other or as many as `together` counts in the queue; seen as a link.

    `give` raises `Refused` if it makes no sense to try again, any other exception if it does: after
    `pause_s`, then twice as long each time, up to 60 s, and until it was offered `tried_s` ago. `done` is
    told, in any thread, what was given or given up, and whether it was given. The link is up until
    something cannot be given: nothing shows earlier that nobody takes it. `stats` hold offered = sent +
    dropped + queued.
    """

    def __init__(
        self,
        name: str,
        url: str,
        waiting_max: int,
        give: Callable[[Sequence[T]], None],
        done: Callable[[T, bool], None] = lambda *_: None,
        together: Callable[[Sequence[T]], int] = lambda _: 1,
        pause_s: float = PAUSE_S,
        tried_s: float = inf,
    ) -> None:
        self.name, self.url, self.stats, self.queue_bytes = name, url, Stats(), 0
        self.state: State = "closed"
        self.fault, self.losses = "", 0
        self._give, self._done, self._together = give, done, together
        self._waiting_max, self._pause_s, self._tried_s = waiting_max, pause_s, tried_s
        self._queue: deque[T] = deque()
        self._since_s = deque[float]()  # when each was offered
        self._changed = threading.Condition()
        self._ending = False

    def open(self, hub: Hub, loop: object) -> None:
        """Start the thread."""
        self.state, self._ending = "up", False
        threading.Thread(target=self._run, name=self.name, daemon=True).start()

    @property
    def condition(self) -> str:
        """The reason why the last one was given up; "" if it was given."""
        return self.fault if self.state == "up" else ""

    def revise(self, other: object) -> bool:
        """Return False: another one takes its place."""
        return False

    def offer(self, one: T) -> bool:
        """Queue something, or drop it and count that. Return whether it is queued. For any thread."""
        with self._changed:
            self.stats.offered += 1
            reason = "closed" if self._ending or self.state == "closed" else ""
            reason = reason or ("queue full" if self.stats.queued >= self._waiting_max else "")
            if reason:
                self.stats.drop(reason)
                return False
            self._queue.append(one)
            self._since_s.append(time.monotonic())
            self.stats.queued += 1
            self._changed.notify()
            return True

    def _run(self) -> None:
        pause_s = self._pause_s
        while taken := self._next():
            part, since_s = taken
            fault, refused = self._try(part)
            if not fault or refused or time.monotonic() - since_s >= self._tried_s:
                pause_s = self._pause_s
                self._settle(part, fault, refused or len(part))
                continue
            self._suspend(fault, pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _next(self) -> tuple[list[T], float] | None:
        """Wait for the next ones, which stay queued, and return when the first was offered too."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ending)
            if self._ending:
                return None
            return [self._queue[at] for at in range(self._together(self._queue))], self._since_s[0]

    def _try(self, part: list[T]) -> tuple[str, int]:
        """Give a part. Return the fault, "" for none, and how many are refused for ever."""
        try:
            self._give(part)
        except Refused as error:
            return plain(str(error)) or "refused", min(error.count or len(part), len(part))
        except Exception as error:  # of libraries and of the other end: none may end the thread
            words = words_of(error) if isinstance(error, OSError) else str(error)
            return f"{type(error).__name__}: {plain(words)}", 0
        return "", 0

    def _settle(self, part: list[T], fault: str, lost: int) -> None:
        with self._changed:
            if self._ending:
                return
            for _ in part:
                self._queue.popleft()
                self._since_s.popleft()
            self.stats.queued -= len(part)
            lost = lost if fault else 0  # nobody knows which of them
            if lost:
                self.stats.drop("refused", lost)
            self.stats.sent += len(part) - lost
            self.state, self.fault = "up", fault
        for one in part:
            self._done(one, not lost)

    def _suspend(self, fault: str, pause_s: float) -> None:
        with self._changed:
            if not self._ending:
                self.losses += self.state == "up"
                self.state, self.fault = "waiting", fault
                self._changed.wait_for(lambda: self._ending, pause_s)

    def close(self) -> None:
        """End the thread. What waits is dropped as `closed`. Idempotent, and waits for nobody."""
        with self._changed:
            self._ending, self.state = True, "closed"
            self.stats.drop("closed", self.stats.queued)
            self.stats.queued = 0
            self._queue.clear()
            self._since_s.clear()
            self._changed.notify()
