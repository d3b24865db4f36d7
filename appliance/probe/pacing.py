"""A token bucket on any clock, without I/O: how many messages may go now, so that the rate never drifts."""

_DEPTH_S = 1.0


class Pacer:
    """Message number n (from 0) is due at `start_s + n / rate`, whenever it is asked for.

    A caller that comes more than a second too late gets a second's worth; the rest is counted in
    `late` and not made up for, so that a machine that slept does not burst.
    """

    def __init__(self, rate: float, start_s: float, depth_s: float = _DEPTH_S) -> None:
        self.late = 0
        self._rate, self._start_s = rate, start_s
        self._depth = max(1, int(rate * depth_s))
        self._gone = 0  # taken or late

    def next_s(self) -> float:
        """When the next message is due."""
        return self._start_s + self._gone / self._rate

    def take(self, now_s: float, messages_max: int) -> int:
        """How many of the messages that are due may go now."""
        due = int((now_s - self._start_s) * self._rate + 1e-6) + 1 - self._gone
        if due > self._depth:
            self.late += due - self._depth
            self._gone += due - self._depth
            due = self._depth
        taken = max(0, min(due, messages_max))
        self._gone += taken
        return taken
