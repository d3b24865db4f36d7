"""Batches that wait while a trial is on, in order for each pipe. Pure."""

from collections import deque
from collections.abc import Callable, Iterator

from bus.hub import Pipe
from bus.wire.batch import Batch

Split = Callable[[Batch], tuple[Batch, Batch | None] | None]
"""A function that returns the head of a batch, up to the message that is looked for, and the rest."""


class Held:
    """Batches that wait, by the pipe that brought them: `bytes` of all, and `counts` of messages by pipe."""

    def __init__(self) -> None:
        self._lines: dict[Pipe, deque[Batch]] = {}
        self.counts: dict[Pipe, int] = {}
        self.bytes = 0

    def put(self, pipe: Pipe, batch: Batch) -> None:
        """Add an owned batch behind what a pipe brought before."""
        self._lines.setdefault(pipe, deque()).append(batch)
        self._count(pipe, batch, 1)

    def _count(self, pipe: Pipe, batch: Batch, sign: int) -> None:
        self.counts[pipe] = self.counts.get(pipe, 0) + sign * batch.count
        self.bytes += sign * len(batch.data)

    def take(self, pipe: Pipe) -> Iterator[Batch]:
        """Take out all that a pipe brought, in order."""
        line = self._lines.get(pipe)
        while line:
            batch = line.popleft()
            self._count(pipe, batch, -1)
            yield batch

    def take_first(self, pipe: Pipe, split: Split) -> Iterator[Batch]:
        """Take out what a pipe brought, up to the message at which `split` cuts a batch."""
        line = self._lines.get(pipe)
        while line:
            batch = line.popleft()
            self._count(pipe, batch, -1)
            found = split(batch)
            if found is None:
                yield batch
                continue
            head, rest = found
            if rest is not None:
                line.appendleft(rest)
                self._count(pipe, rest, 1)
            yield head
            return

    def pipes(self) -> list[Pipe]:
        """Return the pipes of which something waits, in the order in which they came."""
        return [pipe for pipe, line in self._lines.items() if line]
