"""Growing pauses between attempts, with jitter, and the turn of addresses. Pure: the caller brings the jitter
and waits."""

from collections.abc import Callable

SPREAD = 0.5, 1.0  # of the full pause: programs that lost one peer together do not all come back at once


class Backoff:
    """Pauses from `min_s` to `max_s`, each twice the one before, until `reset`.

    `jitter(low, high)` returns a number in that range, as `random.uniform` does. `pause_s` is the full length
    of the next pause, before jitter. With equal bounds the pauses do not grow.
    """

    __slots__ = ("_jitter", "max_s", "min_s", "pause_s")

    def __init__(self, min_s: float, max_s: float, jitter: Callable[[float, float], float]) -> None:
        self.min_s, self.max_s, self.pause_s = min_s, max_s, min_s
        self._jitter = jitter

    def next_s(self) -> float:
        """Return the pause to make now, in seconds. The following one is twice as long."""
        pause_s = self.pause_s * self._jitter(*SPREAD)
        self.pause_s = min(2 * self.pause_s, self.max_s)
        return pause_s

    def reset(self) -> None:
        """Start again with the shortest pause: the attempt succeeded."""
        self.pause_s = self.min_s

    def revise(self, min_s: float, max_s: float) -> None:
        """Go on with other bounds; a pause that would have been the shortest is so again."""
        pause_s = min_s if self.pause_s == self.min_s else max(min_s, self.pause_s)
        self.min_s, self.max_s, self.pause_s = min_s, max_s, min(pause_s, max_s)

    def fresh(self) -> "Backoff":
        """Return another back-off with the same bounds, at its shortest pause."""
        return Backoff(self.min_s, self.max_s, self._jitter)


class Attempts(Backoff):
    """The schedule of attempts to reach a peer that may have several addresses.

    `turn` numbers the address to begin the next attempt with, modulo how many there are.
    """

    __slots__ = ("turn",)

    def __init__(self, min_s: float, max_s: float, jitter: Callable[[float, float], float]) -> None:
        super().__init__(min_s, max_s, jitter)
        self.turn = 0

    def move_on(self) -> None:
        """Begin the next attempt with another address: a peer may take connections, and be of no use."""
        self.turn += 1

    def after(self, lasted: bool, pauses: Backoff | None = None) -> float:
        """Return the pause after an attempt, in seconds: the shortest one after a connection that `lasted`,
        else one that grows, and then another address comes first. `pauses` has it in place of this."""
        if lasted:
            self.reset()
        else:
            self.move_on()
        return (pauses or self).next_s()
