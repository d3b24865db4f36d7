"""An allowance: how much of something may be taken at once, and how fast it comes back. Pure."""


class Allowance:
    """The work that one peer may ask for: `at_once` units, and `rate` more a second.

    Times in seconds, monotonic.
    """

    __slots__ = ("_at_once", "_left", "_rate", "_seen_s")

    def __init__(self, rate: float, at_once: float, now: float) -> None:
        self._rate, self._at_once, self._left, self._seen_s = rate, at_once, at_once, now

    def left(self, now: float) -> float:
        """Return how many units are left; fewer than 0 if more were taken."""
        self._left = min(self._at_once, self._left + self._rate * (now - self._seen_s))
        self._seen_s = now
        return self._left

    def take(self, units: float, now: float) -> None:
        """Take units, even more than are left: then it takes the longer until a unit is left again."""
        self._left = self.left(now) - units

    def full(self, now: float) -> bool:
        """Return whether all units are left: then the allowance may be forgotten."""
        return self.left(now) >= self._at_once
