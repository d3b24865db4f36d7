"""The times at which CAN frames came, on the loop's clock and since 1970. Pure."""

from collections.abc import Callable, Sequence

_DRIFT_S = 0.001
_PAST_NS, _FUTURE_NS = 10_000_000_000, 1_000_000_000


class Clock:
    """The machine's clock beside the loop's, both in seconds.

    A stamp in whole microseconds becomes a time of the loop, and back, without a loss. The distance of both
    clocks is taken anew where the machine's clock was set, or has drifted by a millisecond.
    """

    def __init__(self, loop_s: Callable[[], float], wall_s: Callable[[], float]) -> None:
        self._loop_s, self._wall_s = loop_s, wall_s
        self._ahead_s = wall_s() - loop_s()

    def _look(self) -> float:
        ahead_s = self._wall_s() - self._loop_s()
        if abs(ahead_s - self._ahead_s) > _DRIFT_S:
            self._ahead_s = ahead_s
        return self._ahead_s

    def came_s(self, stamps_ns: Sequence[int], now_s: float) -> Sequence[float]:
        """Return stamps, in ns since 1970, as times of the loop: at most `now_s`."""
        ahead_s = self._look()
        return [min(now_s, ns // 1000 / 1e6 - ahead_s) for ns in stamps_ns]

    def unix_s(self, at_s: float) -> float:
        """Return a time of the loop in seconds since 1970."""
        return at_s + self._ahead_s


def stamp_of(told_s: float, now_ns: int) -> int:
    """Return the stamp in ns of a time that a driver told in seconds; `now_ns` if it counts from elsewhere.

    Drivers count from 1970, from the start of the machine or of the adapter, or tell nothing (0). A time is
    taken if it lies in the last 10 s. It may be 1 s ahead, as the clock of another machine.
    """
    stamp_ns = round(told_s * 1e6) * 1000 if 0 < told_s < 1e12 else 0
    return min(stamp_ns, now_ns) if -_FUTURE_NS <= now_ns - stamp_ns <= _PAST_NS else now_ns
