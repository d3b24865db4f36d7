"""The hub: the raw bus. A batch in from one pipe goes out to all the others.

The seams of DESIGN section 3: `Link.open/close`, `Pipe.send/close/stats`, `Hub.attach/detach/publish`.
Nothing else crosses them.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from bus.wire.batch import Batch

_COUNTS = ("received", "received_bytes", "offered", "sent", "sent_bytes", "queued", "queued_bytes")


class Stats:
    """Plain integers of one pipe, in messages unless a name says bytes; read at scrape time.

    The ledger: what the hub offered = sent + dropped (by reason) + queued, at any moment.
    `rejected` counts what the wire brought that never became a message, by reason.
    """

    __slots__ = (
        "dropped",
        "offered",
        "queued",
        "queued_bytes",
        "received",
        "received_bytes",
        "rejected",
        "sent",
        "sent_bytes",
    )

    def __init__(self) -> None:
        self.received = self.received_bytes = 0
        self.offered = 0
        self.sent = self.sent_bytes = 0
        self.queued = self.queued_bytes = 0
        self.dropped: dict[str, int] = {}
        self.rejected: dict[str, int] = {}

    def drop(self, reason: str, count: int = 1) -> None:
        """Count messages that were offered and will not be sent."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    def reject(self, reason: str, count: int = 1) -> None:
        """Count input that never became a message."""
        self.rejected[reason] = self.rejected.get(reason, 0) + count

    def add(self, part: "Stats") -> None:
        """Add the counts of another, so that these are the sum of both."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        for reason, count in part.dropped.items():
            self.drop(reason, count)
        for reason, count in part.rejected.items():
            self.reject(reason, count)

    def balance(self) -> int:
        """0 when the ledger balances; else the messages unaccounted for."""
        return self.offered - self.sent - self.queued - sum(self.dropped.values())


class Pipe(Protocol):
    """One live peer. `send` never blocks and never raises for a peer's trouble."""

    name: str
    stats: Stats

    def send(self, batch: Batch) -> None:
        """Count `batch` as offered; then send it, queue it (`batch.keep()`), or count the drop."""

    def close(self) -> None:
        """Let go of the peer; what was queued becomes a counted drop. Idempotent."""


@runtime_checkable
class Purging(Protocol):
    """A pipe that can let go of what waits, and stay."""

    def purge(self, reason: str) -> list[bytes]:
        """Drop what waits and has not begun, counted by `reason`; those messages, in order."""


def purge(pipe: Pipe, reason: str) -> list[bytes]:
    """As `Purging.purge`; a pipe that cannot, and has something queued, is closed."""
    if isinstance(pipe, Purging):
        return pipe.purge(reason)
    if pipe.stats.queued:
        pipe.close()
    return []


Tap = Callable[[Batch, Pipe | None], None]
"""Is shown a batch and the pipe it came from, or went to; copies what it wants to keep, and never raises."""


class Hub:
    """All pipes that make one bus. Not thread-safe: everything happens on one event loop.

    `taps` are shown all that is published, before it goes out.
    """

    __slots__ = ("name", "pipes", "taps")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.pipes: tuple[Pipe, ...] = ()
        self.taps: tuple[Tap, ...] = ()

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)

    def detach(self, pipe: Pipe) -> None:
        """Forget a pipe; no error if it is not attached."""
        self.pipes = tuple(p for p in self.pipes if p is not pipe)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Hand `batch` to every pipe but `origin`, and count it as received from there."""
        if origin is not None:
            origin.stats.received += batch.count
            origin.stats.received_bytes += len(batch.data)
        for tap in self.taps:
            tap(batch, origin)
        for pipe in self.pipes:
            if pipe is not origin:
                pipe.send(batch)


class Link(Protocol):
    """A configured endpoint: listens, dials or opens a device; owns the reconnecting."""

    name: str

    def open(self, hub: "Hub", loop: AbstractEventLoop) -> None:
        """Start; never blocks. Trouble after this is a state with retries, not an exception.

        Raises `LinkError` only for what can never work (a bad address, a port that is taken).
        """

    def close(self) -> None:
        """Stop and close all pipes. Idempotent, synchronous."""
