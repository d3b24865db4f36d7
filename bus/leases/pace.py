"""The pace of a candidate: how late its machine is, and the lease that such a machine keeps. Pure.

A lease is lost without a fault where a process gets its turn later than the lease allows. So a candidate
measures how late its own timers come, and how long brokers take to answer, and asks for a longer lease where
these are slow: `FACTOR` times the worst of the last minutes is added to the shortest lease. A process
that was stopped, or a machine that was paused, is no late one: a longer lease would only make its next stop
worse.
"""

from math import inf
from typing import Final

from bus.leases.wire import LEASE_MS, LEASE_MS_MAX, LEASE_MS_MIN, LEASE_REAL_TIME_MS

FACTOR: Final = 8
FACTOR_REAL_TIME: Final = 2
"""The factor with real-time priority: lateness then comes from our own work, and its worst hardly grows."""
KEPT_S: Final = 600.0
"""The time for which a measurement counts."""
STARTING_S: Final = 5.0
"""A process that starts is late for reasons that pass: what it measures so early counts for `STARTED_S`."""
STARTED_S: Final = 30.0
_IDLE_S: Final = 0.005  # so late every machine is
_BACKLOG_S: Final = 0.25  # after a stop, for what waited: no answer to what it asks then is measured
_STEP_S: Final = 10.0


class Worst:
    """The largest of the measurements that still count, in steps of `_STEP_S`."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[int, float] = {}  # by the step in which they cease to count

    def note(self, seconds: float, until_s: float) -> None:
        """Note a measurement that counts until `until_s`, or up to a step less."""
        step = int(until_s / _STEP_S)
        self._kept[step] = max(seconds, self._kept.get(step, 0.0))

    def at(self, now: float) -> float:
        """Return the largest at a time, in seconds; 0 if none counts."""
        for step in [step for step in self._kept if step * _STEP_S <= now]:
            del self._kept[step]
        return max(self._kept.values(), default=0.0)


class Pace:
    """The lease that a candidate asks for: `lease_ms`, or more on a machine that is late, up to `most_ms`.

    Without `lease_ms` the shortest one is 250 ms, and 100 ms while the process has real-time priority. Times
    are in seconds, monotonic.
    """

    def __init__(self, lease_ms: int | None, most_ms: int) -> None:
        self._late, self._answers = Worst(), Worst()
        self._began_s: float | None = None
        self._real_time = False
        self._stood_s = -inf  # until then the process had no turn for long
        self._due_s = inf  # the next measurement
        self.revise(lease_ms, most_ms)

    def revise(self, lease_ms: int | None, most_ms: int) -> None:
        """Set other bounds."""
        self._given_ms = None if lease_ms is None else min(max(LEASE_MS_MIN, lease_ms), LEASE_MS_MAX)
        self.most_ms = min(max(self.least_ms, most_ms), LEASE_MS_MAX)
        self.lease_ms, self.late_s = self.least_ms, 0.0

    @property
    def least_ms(self) -> int:
        """The lease of a machine that is on time."""
        if self._given_ms is not None:
            return self._given_ms
        return LEASE_REAL_TIME_MS if self._real_time else LEASE_MS

    @property
    def stop_s(self) -> float:
        """The length of a stop that is a fault, in seconds, for then others have taken over.

        A shorter one is lateness, such as that of a host that pauses a virtual processor.
        """
        return max(LEASE_REAL_TIME_MS, self.least_ms) / 1000

    def late(self, seconds: float, now: float, stopped_s: float = 0.0) -> None:
        """Note that a timer of this process came so late, and for how much of that time it was stopped."""
        self._due_s = inf
        if seconds >= self.stop_s:
            self._stood_s = now
        if stopped_s < self.stop_s:
            self._note(self._late, seconds, now)

    def answered(self, seconds: float, now: float) -> None:
        """Note that a broker took so long to answer, unless the answer waited for this process."""
        if now - seconds > self._stood_s + _BACKLOG_S and self.overdue_s(now) < self.stop_s:
            self._note(self._answers, seconds, now)

    def expect(self, due_s: float) -> None:
        """Note when the next timer is due, whose lateness is to be measured."""
        self._due_s = due_s

    def overdue_s(self, now: float) -> float:
        """Return for how long a timer has been due whose lateness is not noted; below 0 if none is."""
        return now - self._due_s

    def prioritize(self, real_time: bool) -> None:
        """Note whether the process has real-time priority now."""
        self._real_time = real_time

    def is_starting(self, now: float) -> bool:
        """Tell whether the lease is longer, and may be so for what was late only as the process started."""
        began_s = now if self._began_s is None else self._began_s
        return self.lease_ms > self.least_ms and now - began_s < STARTING_S + STARTED_S

    def _note(self, worst: Worst, seconds: float, now: float) -> None:
        """Note a measurement. One above the longest lease is a process that was frozen: a fault."""
        if self._began_s is None:
            self._began_s = now
        if _IDLE_S < seconds < self.most_ms / 1000:
            worst.note(seconds, now + (STARTED_S if now - self._began_s < STARTING_S else KEPT_S))

    def judge(self, now: float) -> int:
        """Return the lease to ask for now, in ms. `late_s` is the lateness that it is made for."""
        self.late_s = self._late.at(now) + self._answers.at(now)
        factor = FACTOR_REAL_TIME if self._real_time else FACTOR
        self.lease_ms = min(self.most_ms, self.least_ms + int(1000 * factor * self.late_s))
        return self.lease_ms
