"""The decline of a backlog: how fast it gets less, and so how long it still takes. Pure."""

from collections import deque
from typing import Final

SPAN_S: Final = 10.0
"""The time over which the rate is worked out."""


class Decline:
    """The decline of one backlog. `note` takes its size now and then."""

    def __init__(self) -> None:
        self._seen = deque[tuple[float, int]]()

    def note(self, now_s: float, messages: int) -> None:
        """Note how many messages wait now."""
        self._seen.append((now_s, messages))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - SPAN_S:
            self._seen.popleft()

    @property
    def per_s(self) -> float:
        """The messages that it has lost a second, new ones taken off; negative while it grows."""
        if len(self._seen) < 2:
            return 0.0
        (from_s, before), (to_s, now) = self._seen[0], self._seen[-1]
        return (before - now) / (to_s - from_s) if to_s > from_s else 0.0

    @property
    def to_go_s(self) -> float | None:
        """The time until nothing waits, if it goes on so; None if it does not get less."""
        if not self._seen or not self._seen[-1][1]:
            return 0.0
        return self._seen[-1][1] / self.per_s if self.per_s > 0 else None
