"""Rests: times in which a recorder that cannot keep up leaves the data path alone. Pure: time is an argument.

A writer that runs in spare time still costs a busy data path up to a tenth: they share caches, and the data
path copies on its own core.
"""

from math import inf

REST_S = 6.0
_BUSY = 0.75  # of one core: the data path has no time to give away
_LOOK_S = 0.05  # a share of less time than that says little


class Rest:
    """`look` now and then with the processor time used so far; `begin` when the ring is full."""

    def __init__(self) -> None:
        self._until_s = -inf
        self._seen_s: tuple[float, float] | None = None
        self._busy = False

    def look(self, now: float, cpu_s: float) -> None:
        """Look at the processor time of this process so far, of all threads."""
        if self._seen_s is None:
            self._seen_s = now, cpu_s
        elif now - self._seen_s[0] >= _LOOK_S:
            self._busy = cpu_s - self._seen_s[1] > _BUSY * (now - self._seen_s[0])
            self._seen_s = now, cpu_s

    def begin(self, now: float) -> None:
        """Rest if the data path is busy: the ring is full, so more comes than is written."""
        if self._busy:
            self._until_s = now + REST_S

    def over(self, now: float) -> bool:
        return now >= self._until_s
