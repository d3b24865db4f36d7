"""Portions: how much one read may bring, so that the work with it takes about one turn. Pure.

How long a byte takes depends on who hears it: a bridge with many rules needs a hundred times as long as a bus
without. So the time is measured, and the next read is smaller or larger.
"""

from typing import Final

from bus.transports.chores import TURN_S

BEGIN_BYTES: Final = 16 * 1024
LEAST_BYTES: Final = 4096
_PATIENCE_MAX: Final = 1024


class Portion:
    """The bytes that one read may bring, at most `most_bytes`, for about 2 ms of work.

    A read that was too much work makes the next ones smaller, and they grow again only after some that were
    little work: after more of them each time, so that nobody is surprised again and again.
    """

    __slots__ = ("_cheap", "_most_bytes", "_patience", "is_costly", "size_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.size_bytes = min(BEGIN_BYTES, most_bytes)
        self.is_costly = False
        self._cheap = self._patience = 0

    def note(self, read_bytes: int, spent_s: float) -> None:
        """Note how long the work with one read took."""
        if spent_s > 2 * TURN_S:
            self._shrink(int(read_bytes * TURN_S / spent_s))
        elif 2 * read_bytes >= self.size_bytes and spent_s < TURN_S / 2:
            self._cheap += 1
            if self._cheap > self._patience:
                self._grow()
        return None

    def _shrink(self, size_bytes: int) -> None:
        self.size_bytes = max(LEAST_BYTES, min(self.size_bytes, size_bytes))
        self._cheap, self._patience = 0, min(_PATIENCE_MAX, 2 * self._patience + 1)
        self.is_costly = True

    def _grow(self) -> None:
        self.size_bytes = min(self._most_bytes, 2 * self.size_bytes)
        self._cheap, self.is_costly = 0, False
