"""The time for which an event loop looks for events before it sleeps: none, or some while looking pays.

To wake a thread takes 30 to 50 us where its core sleeps too. In a dialogue whose other side answers sooner
than that, most of a round trip is waking. Linux looks in this way at the queues of network cards
(`net.core.busy_poll`), and at processors of virtual machines (`halt_poll_ns`).
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

DEFAULT_US: Final = 50
MOST_US: Final = 1000
SPELL_S: Final = 0.05
"""The longest that a loop goes without sleep: real-time priority is for threads that sleep (`real_time`)."""
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
_TRUSTED: Final = 8  # looks that found something, of late
_VAIN: Final = 4  # those that one look in vain outweighs
_FEW: Final = 8
_MANY: Final = 1024


def default_us(quota: Path = _QUOTA) -> int:
    """Return the default limit: 0 where this process has less than two processors, as peers need one too."""
    processors = float(len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):  # no control group, or "max"
        share, period = map(int, quota.read_text().split())
        processors = min(processors, share / period)
    return DEFAULT_US if processors >= 2 else 0


class BusyPoll:
    """A judge of whether a loop looks for events, without a clock: for `limit_us`, and never if that is 0.

    After some sleeps below the limit the loop looks, until more than one look of five was in vain. Each such
    trial doubles the short sleeps before the next: where a peer runs on the core of the loop, looking keeps
    the peer from its answer, though it answers soon while the loop sleeps.
    """

    def __init__(self, limit_us: int = 0) -> None:
        self._trust = self._short = 0
        self._needed, self._slept_s = _FEW, 0.0
        self.revise(limit_us)

    def revise(self, limit_us: int) -> None:
        """Look for another time from now on, in microseconds."""
        self._limit_s = limit_us / 1e6

    def span_s(self, now_s: float) -> float:
        """Return how long to look before the next sleep, in seconds; 0 for not at all."""
        return self._limit_s if self._trust > 0 and now_s - self._slept_s < SPELL_S else 0.0

    def found(self) -> None:
        """Take note that events came while the loop looked."""
        self._trust = min(self._trust + 1, _TRUSTED)
        if self._trust == _TRUSTED:
            self._needed = _FEW

    def slept(self, began_s: float, now_s: float, looked: bool) -> None:
        """Take note that events came to a loop that slept, `began_s` after it had nothing to do."""
        self._slept_s = now_s
        if looked:
            self._in_vain()
        elif now_s - began_s > self._limit_s:
            self._short = max(0, self._short - _VAIN)
        elif self._trust <= 0:
            self._short += 1
            self._trust = int(self._short >= self._needed)

    def _in_vain(self) -> None:
        self._trust -= _VAIN
        if self._trust <= 0:
            self._trust = self._short = 0
            self._needed = min(2 * self._needed, _MANY)
