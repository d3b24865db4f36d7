"""The time for which an event loop looks for events before it sleeps: none, or some while looking pays.

To wake a thread takes 30 to 50 us where its core sleeps too. In a dialogue whose other side answers sooner
than that, most of a round trip is waking. Linux looks in this way at the queues of network cards
(`net.core.busy_poll`), and at processors of virtual machines (`halt_poll_ns`).
"""

import os
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeVar

from bus.machine.quotas import processors_allowed

T = TypeVar("T")

Poll = Callable[[float | None], list[T]]

DEFAULT_US: Final = 50
MOST_US: Final = 1000
SPELL_S: Final = 0.05
"""The longest that a loop goes without sleep: real-time priority is for threads that sleep (`real_time`)."""
_AT_ONCE_S: Final = 5e-6  # a wait below this was no sleep: no thread is put away and woken so soon
_WAKE_S: Final = 50e-6  # a sleep is up to so much longer than a look that hears the same
_TRUSTED: Final = 8  # looks that found something, of late
_VAIN: Final = 4  # those that one look in vain outweighs
_FEW: Final = 8
_MANY: Final = 1024


def default_us() -> int:
    """Return the default limit: 0 where this process has less than two processors, as peers need one too."""
    return DEFAULT_US if min(len(os.sched_getaffinity(0)), processors_allowed()) >= 2 else 0


class BusyPoll:
    """A wait for events that looks for up to `limit_us` before it sleeps, while that pays; never if it is 0.

    After some sleeps below the limit, but for the time to wake, it looks, until more than one look of five
    was in vain. Each such trial doubles the short sleeps before the next: where a peer runs on the core of
    the loop, looking keeps the peer from its answer, though it answers soon while the loop sleeps. What is
    there at once says nothing.

    `clock` is real time in seconds: that of a loop may be virtual, and stand while it looks.
    """

    def __init__(self, limit_us: int = 0, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._needed, self._slept_s, self._expects = _FEW, 0.0, True
        self.revise(limit_us)

    def revise(self, limit_us: int) -> None:
        """Look for another time from now on, in microseconds."""
        self._limit_s, self._trust, self._short = limit_us / 1e6, 0, 0

    def expect_no_answer(self) -> None:
        """Do not look in the next wait, nor judge by it: for a stream one way it would take a whole core."""
        self._expects = False

    def wait(self, poll: Poll[T], timeout: float | None) -> list[T]:
        """Return the events of `poll`, which waits for some for at most a time in seconds; None: for ever."""
        if not self._limit_s:
            return poll(timeout)
        began_s = now_s = self._clock()
        expects, self._expects = self._expects, True
        looks = expects and self._trust > 0 and began_s - self._slept_s < SPELL_S
        if looks:
            if ready := poll(0):
                return ready
            end_s = began_s + (self._limit_s if timeout is None else min(self._limit_s, timeout))
            while (now_s := self._clock()) < end_s:
                if ready := poll(0):
                    self._found()
                    return ready
        ready = poll(None if timeout is None else max(0.0, timeout - (now_s - began_s)))
        if expects:
            self._waited(began_s, looks, bool(ready))
        return ready

    def _found(self) -> None:
        """Take note that events came while it looked."""
        self._trust = min(self._trust + 1, _TRUSTED)
        if self._trust == _TRUSTED:
            self._needed = _FEW

    def _waited(self, began_s: float, looked: bool, heard: bool) -> None:
        """Take note of a wait in which no look found events: they came later, or if not `heard` a timer."""
        now_s = self._clock()
        if now_s - began_s < _AT_ONCE_S:
            return
        self._slept_s = now_s
        if looked:
            self._in_vain()
        elif now_s - began_s > self._limit_s + _WAKE_S:
            self._short = max(0, self._short - _VAIN)
        elif heard and self._trust <= 0:
            self._short += 1
            self._trust = int(self._short >= self._needed)

    def _in_vain(self) -> None:
        self._trust -= _VAIN
        if self._trust <= 0:
            self._trust = self._short = 0
            self._needed = min(2 * self._needed, _MANY)
