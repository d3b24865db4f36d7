"""A token bucket without I/O, on any clock: it limits the rate of messages, and the rate never drifts."""


class Pacer:
    """A token bucket of one second's messages. Message number n (from 0) is due at `start_s + n / rate`.

    A caller that is more than a second late gets the messages of one second. The rest is counted in `late`
    and never sent, so that a machine that slept does not send a burst.
    """

    def __init__(self, rate: float, start_s: float) -> None:
        self.late = 0
        self._rate, self._start_s = rate, start_s
        self._depth = max(1, int(rate))
        self._gone = 0  # messages taken or late

    def next_s(self) -> float:
        """Return the time in seconds at which the next message is due."""
        return self._start_s + self._gone / self._rate

    def take(self, now_s: float, messages_max: int) -> int:
        """Return how many of the due messages may go now, and count them as gone."""
        due = int((now_s - self._start_s) * self._rate + 1e-6) + 1 - self._gone
        if due > self._depth:
            self.late += due - self._depth
            self._gone += due - self._depth
            due = self._depth
        taken = max(0, min(due, messages_max))
        self._gone += taken
        return taken
