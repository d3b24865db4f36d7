"""The hub: the raw bus. A batch in from one pipe goes out to all the others.

The seams of docs/design.md are stated here in full: all that is asked of a pipe, and of a link.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bus.wire.batch import Batch


@dataclass(slots=True, eq=False)
class Stats:
    """Counts of one pipe, in messages unless a name says bytes; read at scrape time.

    The ledger: what the hub offered = sent + dropped (by reason) + queued, at any moment.
    `rejected` counts what the wire brought that never became a message, by reason.
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
        """Count a batch that the peer sent us. Hubs call it, once for each batch that is published."""
        self.received += batch.count
        self.received_bytes += len(batch.data)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count messages that were offered and will not be sent, if there are any."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def reject(self, reason: str, count: int = 1) -> None:
        """Count input that never became a message."""
        self.rejected[reason] = self.rejected.get(reason, 0) + count

    def add(self, part: "Stats") -> None:
        """Add the counts of another, so that these are the sum of both."""
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
        """Return 0 when the ledger balances; else the number of messages unaccounted for."""
        return self.offered - self.sent - self.queued - sum(self.dropped.values())


class Pipe(Protocol):
    """One live peer. `send` never blocks and never raises for a peer's trouble.

    `inner` is the pipe that this one stands in front of, if any. Derive from this class: it has a default for
    `inner` and for `purge`.
    """

    __slots__ = ()

    name: str
    stats: Stats
    inner: "Pipe | None" = None

    def send(self, batch: Batch) -> None:
        """Count `batch` as offered; then send it, queue it (`batch.keep()`), or count the drop."""

    def purge(self, reason: str) -> list[bytes]:
        """Drop what waits and has not begun, counted by `reason`; return those messages, in order.

        This default is for pipes that cannot take messages back: the pipe is closed if anything waits.
        """
        if self.stats.queued:
            self.close()
        return []

    def close(self) -> None:
        """Let go of the peer; what was queued becomes a counted drop. Idempotent."""


def chain(pipe: Pipe) -> Iterator[Pipe]:
    """Yield a pipe and those behind it, the outermost first; of pipes that share a ledger, the last only."""
    one: Pipe | None = pipe
    while one is not None:
        if one.inner is None or one.inner.stats is not one.stats:
            yield one
        one = one.inner


Tap = Callable[[Batch, Pipe | None], None]
"""Is called with a batch and the pipe it came from or goes to. Copies what it wants to keep; never raises."""


class Hub:
    """All pipes that make one bus. Not thread-safe: everything happens on one event loop.

    `taps` are called with everything that is published, before it goes out.
    """

    __slots__ = ("name", "pipes", "taps")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.pipes: tuple[Pipe, ...] = ()
        self.taps: tuple[Tap, ...] = ()

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)

    def detach(self, pipe: Pipe) -> None:
        """Forget a pipe. It is no error if the pipe is not attached."""
        self.pipes = tuple(p for p in self.pipes if p is not pipe)

    def tap(self, tap: Tap) -> None:
        """Call `tap` with all that is published from now on."""
        self.taps += (tap,)

    def untap(self, tap: Tap) -> None:
        """Call `tap` no more; no error if it was not called."""
        self.taps = tuple(other for other in self.taps if other is not tap)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Hand `batch` to every pipe but `origin`, and count it as received from there."""
        if origin is not None:  # `Stats.receive` inlined: a call here is a fiftieth of a lone message's way
            stats = origin.stats
            stats.received += batch.count
            stats.received_bytes += len(batch.data)
        for tap in self.taps:
            tap(batch, origin)
        for pipe in self.pipes:
            if pipe is not origin:
                pipe.send(batch)


State = Literal["closed", "opening", "up", "waiting"]
"""State of a link: not open; being opened; in use; lost or not found, and tried again after a pause."""


class Link(Protocol):
    """A configured endpoint: listens, dials or opens a device; owns the reconnecting."""

    @property
    def name(self) -> str:
        """Name in logs, ledgers and events; the same from one opening to the next."""

    @property
    def url(self) -> str:
        """Address where it listens or dials, with the port that was bound once open; else its name."""

    @property
    def state(self) -> State:
        """State: a link that listens is up while it listens; others, while their peer or device is there."""

    @property
    def condition(self) -> str:
        """State of the medium in its own words, such as `bus-off`; "" for a medium that has none."""

    @property
    def fault(self) -> str:
        """Last trouble in words; "" if there was none."""

    @property
    def losses(self) -> int:
        """Number of connections or openings that ended, other than by `close`, after they had been up."""

    @property
    def queue_bytes(self) -> int:
        """Number of bytes that may wait for each peer."""

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start; never blocks. Trouble after this is a state with retries, not an exception.

        Raises `LinkError` only for what can never work (a bad address, a port that is taken).
        """

    def close(self) -> None:
        """Stop and close all pipes. Idempotent, synchronous."""
