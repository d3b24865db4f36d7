"""The thread of an outlet: it delivers notices one after the other, and holds up no gateway."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from appliance.alarms.notice import Notice
from bus.errors import words_of
from bus.hub import Hub, State
from bus.ledger import Stats
from bus.text import plain

WAITING: Final = 256
"""Notices that wait; more are dropped as `queue full`."""
TRIED_S: Final = 3600.0
"""So long is a notice tried again, then it is dropped as `refused`."""
_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0

Deliver = Callable[[Notice], None]
"""Delivers a notice. Raises `Refused` if it is of no use to try again, any other exception if it is."""
Done = Callable[[Notice], None]
"""A function that is told, in any thread, of a notice that was delivered or given up."""


class Refused(Exception):
    """A notice that the other end does not take."""


class Outlet(Protocol):
    """An outlet, which tells people of alarms; seen as a link. `offer` may be called in any thread."""

    stats: Stats
    queue_bytes: int

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def condition(self) -> str: ...
    @property
    def fault(self) -> str: ...
    @property
    def losses(self) -> int: ...
    def open(self, hub: Hub, loop: object) -> None: ...
    def offer(self, notice: Notice) -> bool:
        """Queue a notice. Return False if it was dropped."""

    def revise(self, other: object) -> bool: ...
    def close(self) -> None: ...


class ThreadOutlet:
    """An outlet that calls `deliver` in a thread. `stats` hold offered = sent + dropped + queued.

    After a fault it waits `pause_s`, then twice as long each time, up to 60 s.
    """

    condition = ""

    def __init__(self, name: str, url: str, deliver: Deliver, done: Done, pause_s: float = _PAUSE_S) -> None:
        self.name, self.url, self.stats, self.queue_bytes = name, url, Stats(), 0
        self.state: State = "closed"
        self.fault, self.losses = "", 0
        self._deliver, self._done, self._pause_s = deliver, done, pause_s
        self._queue: deque[tuple[Notice, float]] = deque()
        self._changed = threading.Condition()
        self._ending = False

    def open(self, hub: Hub, loop: object) -> None:
        """Start the thread."""
        self.state, self._ending = "up", False
        threading.Thread(target=self._run, name=f"outlet {self.name}", daemon=True).start()

    def revise(self, other: object) -> bool:
        """Return False: another outlet takes its place."""
        return False

    def offer(self, notice: Notice) -> bool:
        """Queue a notice, or drop it and count that. Return whether it is queued."""
        with self._changed:
            self.stats.offered += 1
            reason = "closed" if self._ending or self.state == "closed" else ""
            reason = reason or ("queue full" if self.stats.queued >= WAITING else "")
            if reason:
                self.stats.drop(reason)
                return False
            self._queue.append((notice, time.monotonic()))
            self.stats.queued += 1
            self._changed.notify()
            return True

    def _run(self) -> None:
        pause_s = self._pause_s
        while (taken := self._next()) is not None:
            notice, since_s = taken
            fault, final = self._try(notice)
            if not fault or final or time.monotonic() - since_s >= TRIED_S:
                pause_s = self._pause_s
                self._settle(notice, fault)
                continue
            self._suspend(fault, pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _next(self) -> tuple[Notice, float] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ending)
            return None if self._ending else self._queue[0]

    def _try(self, notice: Notice) -> tuple[str, bool]:
        """Deliver a notice. Return the fault, "" for none, and whether it is final."""
        try:
            self._deliver(notice)
        except Refused as error:
            return plain(str(error)) or "refused", True
        except Exception as error:  # of libraries and of the other end: none may end the thread
            words = words_of(error) if isinstance(error, OSError) else str(error)
            return f"{type(error).__name__}: {plain(words)}", False
        return "", False

    def _settle(self, notice: Notice, fault: str) -> None:
        with self._changed:
            if self._ending:
                return
            self._queue.popleft()
            self.stats.queued -= 1
            if fault:
                self.stats.drop("refused")
            else:
                self.stats.sent += 1
            self.state, self.fault = "up", fault
        self._done(notice)

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
            self._changed.notify()
