"""When a recorder that cannot keep up lets the data path alone for a while. Pure: time is an argument.

A writer that runs in spare time still costs a busy data path up to a tenth: it shares caches with it, and
what is copied for it is copied on its core.
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
        """`cpu_s`: of this process, all threads."""
        if self._seen_s is None:
            self._seen_s = now, cpu_s
        elif now - self._seen_s[0] >= _LOOK_S:
            self._busy = cpu_s - self._seen_s[1] > _BUSY * (now - self._seen_s[0])
            self._seen_s = now, cpu_s

    def begin(self, now: float) -> None:
        """More comes than is written: if the data path is busy, it goes first."""
        if self._busy:
            self._until_s = now + REST_S

    def over(self, now: float) -> bool:
        return now >= self._until_s
