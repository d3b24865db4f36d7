"""Ages: how long messages have waited in a journal, by clocks that may be set. Pure.

A time of day that is set back, or unknown after a start, must not make an old command look new. So within a
process time never goes back, and what seems to come from the future is of an unknown age, which is the
greatest.
"""

from collections.abc import Callable
from typing import Final

UNKNOWN_MS: Final = 0xFFFFFFFF
"""An age that nobody knows: as old as can be said."""
SKEW_MS: Final = 1000
"""A message is new if its time is so little ahead."""


class Wall:
    """The time of day, in ms since 1970, which goes on with `clock` (seconds) and never back."""

    def __init__(self, clock: Callable[[], float], unix_s: Callable[[], float]) -> None:
        self._clock, self._unix_s = clock, unix_s
        self._ahead_s = unix_s() - clock()

    @property
    def now_ms(self) -> int:
        """The time now. A clock that is set forward takes it along, as a machine that slept has waited."""
        now_s = self._clock()
        self._ahead_s = max(self._ahead_s, self._unix_s() - now_s)
        return int((now_s + self._ahead_s) * 1000)


def time_of(now_ms: int, age_ms: int) -> int:
    """Return when what has an age was journaled. If that is before all time, because the clock is not set, it
    is a time to come, so that the age stays unknown."""
    return now_ms - age_ms if age_ms <= now_ms else now_ms + UNKNOWN_MS


def age_of(now_ms: int, time_ms: int) -> int:
    """Return the age of what was journaled at `time_ms`, in ms, from 0 to `UNKNOWN_MS`."""
    age_ms = now_ms - time_ms
    return UNKNOWN_MS if age_ms < -SKEW_MS else max(0, min(age_ms, UNKNOWN_MS))
