"""Pauses of a recorder whose writer cannot keep up with a busy data path. Pure: time is an argument.

A writer that runs in spare time still costs a busy data path up to a tenth: they share caches, and the data
path copies on its own core.
"""

from math import inf

BACKOFF_S = 6.0
_BUSY = 0.75  # of one core: the data path has no time to give away
_LOOK_S = 0.05  # a share of less time than that says little


class WriterBackoff:
    """Decides whether to record. Call `look` a few times a second, and `begin` when the ring is full."""

    def __init__(self) -> None:
        self._until_s = -inf
        self._seen_s: tuple[float, float] | None = None
        self._busy = False

    def look(self, now: float, cpu_s: float) -> None:
        """Note the processor time of all threads of this process so far, in seconds."""
        if self._seen_s is None:
            self._seen_s = now, cpu_s
        elif now - self._seen_s[0] >= _LOOK_S:
            self._busy = cpu_s - self._seen_s[1] > _BUSY * (now - self._seen_s[0])
            self._seen_s = now, cpu_s

    def begin(self, now: float) -> None:
        """Back off for `BACKOFF_S` if the data path is busy."""
        if self._busy:
            self._until_s = now + BACKOFF_S

    def over(self, now: float) -> bool:
        """Return whether no backoff is under way."""
        return now >= self._until_s
