"""The account of the messages that an end of a durable trunk gets live: by its connection, and no journal."""

from collections import deque
from typing import Protocol

from bus.ledger import Stats
from bus.transports.stream import StreamPipe
from bus.wire.batch import Batch


class Said:
    """Messages said by a pipe that counts for somebody else. `stats` counts them, as the bytes leave."""

    def __init__(self, pipe: StreamPipe) -> None:
        self.stats = Stats()
        self._pipe = pipe
        self._waiting = deque[tuple[int, int]]()  # up to which byte of the pipe, and how many messages

    def say(self, batch: Batch) -> None:
        """Say messages, now or later."""
        self._pipe.say(batch)
        self.stats.offered += batch.count
        self.stats.queued += batch.count
        self._waiting.append((self._pipe.stats.sent_bytes + self._pipe.queued_bytes, batch.count))
        self.settle()

    def settle(self) -> None:
        """Count the messages that have left as sent."""
        sent_bytes = self._pipe.stats.sent_bytes
        while self._waiting and self._waiting[0][0] <= sent_bytes:
            self._count(self._waiting.popleft()[1])

    def _count(self, count: int) -> None:
        self.stats.queued -= count
        self.stats.sent += count

    def end(self) -> None:
        """Count the messages that have not left as dropped: the pipe is closed."""
        self.settle()
        self.stats.drop("closed", self.stats.queued)
        self.stats.queued = 0
        self._waiting.clear()


class CountedConnection(Protocol):
    """The connection that tells of the messages handed to it."""

    @property
    def ledger(self) -> Stats:
        """The ledger of these messages, as it is now."""


class Handed:
    """The messages handed to a connection: `own` counts what its ledger says of them.

    They are looked at for each batch, so that nothing is copied.
    """

    def __init__(self, line: CountedConnection, own: Stats) -> None:
        self._line, self._own, self._known = line, own, line.ledger.copy()

    def settle(self) -> None:
        """Count what the connection has sent, dropped and rejected since the last call."""
        told, own, known = self._line.ledger, self._own, self._known
        if gain := told.sent - known.sent:
            own.sent += gain
            own.queued -= gain
            known.sent = told.sent
        if gain := told.noise_bytes - known.noise_bytes:
            own.noise_bytes += gain
            known.noise_bytes = told.noise_bytes
        own.queued -= _moved(told.dropped, known.dropped, own.dropped)
        _moved(told.rejected, known.rejected, own.rejected)


def _moved(told: dict[str, int], known: dict[str, int], own: dict[str, int]) -> int:
    """Add what is told by reason, and was not known, to `own`. Return how much that is."""
    moved = 0
    for reason, count in told.items():
        if gain := count - known.get(reason, 0):
            own[reason] = own.get(reason, 0) + gain
            known[reason] = count
            moved += gain
    return moved
