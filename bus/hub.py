"""The hub, which is the raw bus: it sends a batch from one pipe to all the others.

This module also defines the two main interfaces of docs/design.md: pipe and link.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bus.wire.batch import Batch


@dataclass(slots=True, eq=False)
class Stats:
    """The counts of one pipe, in messages unless the name says bytes. Metrics read them at each scrape.

    The ledger holds at any moment: offered (by the hub) = sent + dropped (by reason) + queued.
    `rejected` counts input from the wire that never became a message, by reason.
    """

    received: int = 0
    received_bytes: int = 0
    offered: int = 0
    sent: int = 0
    sent_bytes: int = 0
    queued: int = 0
    queued_bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)

    def receive(self, batch: Batch) -> None:
        """Count a batch that the peer sent us. Hubs call this once for each published batch."""
        self.received += batch.count
        self.received_bytes += len(batch.data)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count offered messages that will not be sent. A count of 0 adds no reason."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def reject(self, reason: str, count: int = 1) -> None:
        """Count input that never became a message."""
        self.rejected[reason] = self.rejected.get(reason, 0) + count

    def add(self, part: "Stats") -> None:
        """Add the counts of `part` to these."""
        self.received += part.received
        self.received_bytes += part.received_bytes
        self.offered += part.offered
        self.sent += part.sent
        self.sent_bytes += part.sent_bytes
        self.queued += part.queued
        self.queued_bytes += part.queued_bytes
        for reason, count in part.dropped.items():
            self.drop(reason, count)
        for reason, count in part.rejected.items():
            self.reject(reason, count)

    def balance(self) -> int:
        """Return the number of messages that the ledger does not account for; 0 if it balances."""
        return self.offered - self.sent - self.queued - sum(self.dropped.values())


class Pipe(Protocol):
    """A live peer. `send` never blocks, and never raises because of a fault of the peer.

    `inner` is the pipe that this one wraps, if any. Derive from this class: it has a default for `inner` and
    for `purge`.
    """

    __slots__ = ()

    name: str
    stats: Stats
    inner: "Pipe | None" = None

    def send(self, batch: Batch) -> None:
        """Count `batch` as offered. Then send it, queue it (`batch.keep()`), or drop and count it."""

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages that have not begun; count them by `reason` and return them in order.

        This default is for pipes that cannot take messages back: it closes the pipe if messages are waiting.
        """
        if self.stats.queued:
            self.close()
        return []

    def close(self) -> None:
        """Release the peer. Queued messages are dropped and counted. Idempotent."""


def chain(pipe: Pipe) -> Iterator[Pipe]:
    """Yield a pipe and those it wraps, the outermost first. Of pipes that share a ledger, only the last."""
    one: Pipe | None = pipe
    while one is not None:
        if one.inner is None or one.inner.stats is not one.stats:
            yield one
        one = one.inner


Tap = Callable[[Batch, Pipe | None], None]
"""A function called with a batch and the pipe it is from or for. Copies what it keeps; never raises."""


class Hub:
    """A bus: the set of its pipes. Not thread-safe: use it on one event loop.

    `taps` are called with every published batch before it is sent.
    """

    __slots__ = ("name", "pipes", "taps")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.pipes: tuple[Pipe, ...] = ()
        self.taps: tuple[Tap, ...] = ()

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)

    def detach(self, pipe: Pipe) -> None:
        """Remove a pipe. It is no error if the pipe is not attached."""
        self.pipes = tuple(p for p in self.pipes if p is not pipe)

    def tap(self, tap: Tap) -> None:
        """Call `tap` with every batch that is published from now on."""
        self.taps += (tap,)

    def untap(self, tap: Tap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.taps = tuple(other for other in self.taps if other is not tap)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Send `batch` to every pipe except `origin`, and count it as received from `origin`."""
        if origin is not None:  # `Stats.receive` inlined: a call costs 2 % of the path of a single message
            stats = origin.stats
            stats.received += batch.count
            stats.received_bytes += len(batch.data)
        for tap in self.taps:
            tap(batch, origin)
        for pipe in self.pipes:
            if pipe is not origin:
                pipe.send(batch)


State = Literal["closed", "opening", "up", "waiting"]
"""State of a link: not open; being opened; in use; waiting for a retry after it was lost or not found."""


class Link(Protocol):
    """A configured endpoint that listens, dials or opens a device. It reconnects by itself."""

    @property
    def name(self) -> str:
        """Name in logs, ledgers and events; it stays the same over reopenings."""

    @property
    def url(self) -> str:
        """Address where it listens or dials; once it is open, with the bound port. Other links: the name."""

    @property
    def state(self) -> State:
        """State. A listening link is up while it listens; others, while their peer or device is there."""

    @property
    def condition(self) -> str:
        """State of the medium in its own words, such as `bus-off`; "" for a medium that has none."""

    @property
    def fault(self) -> str:
        """Last fault as text; "" if there was none."""

    @property
    def losses(self) -> int:
        """Number of connections or openings that ended after they were up, except by `close`."""

    @property
    def queue_bytes(self) -> int:
        """Bound of the queue to each peer, in bytes."""

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start without blocking. Later faults are a state with retries, not an exception.

        Raises `LinkError` only for what can never work: a bad address, or a port that is taken.
        """

    def close(self) -> None:
        """Stop, and close all pipes before returning. Idempotent."""
