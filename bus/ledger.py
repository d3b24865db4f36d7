"""The ledger of a pipe, and the account of a link: what all its pipes have counted so far. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Protocol

_NUMBERS: Final[Callable[[Any], tuple[object, ...]]] = attrgetter(
    "received", "received_bytes", "offered", "sent", "sent_bytes", "queued", "queued_bytes", "noise_bytes",
    "items", "said",
)  # fmt: skip


@dataclass(slots=True, eq=False, weakref_slot=True)
class Stats:
    """The counts of one pipe, in messages unless the name says bytes. Metrics read them at each scrape.

    The ledger holds at any moment: offered (by the hub) = sent + dropped (by reason) + queued.
    `rejected` counts input from the wire that never became a message, by reason, in the units of the medium,
    and `noise_bytes` its bytes where bytes come without units. `items` came in on a wire with a protocol, and
    `said` were made for it.
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
    noise_bytes: int = 0
    items: int = 0
    said: int = 0

    def receive(self, batch: "Sized") -> None:
        """Count a batch that the peer sent us. Hubs call this once for each published batch."""
        self.received += batch.count
        self.received_bytes += batch.size

    def unreceive(self, size: int) -> None:
        """Take back that a message of so many bytes, with its length, was received: it is none of a bus."""
        self.received -= 1
        self.received_bytes -= size

    def drop(self, reason: str, count: int = 1) -> None:
        """Count offered messages that will not be sent. A count of 0 adds no reason."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def reject(self, reason: str, count: int = 1) -> None:
        """Count input that never became a message. A count of 0 adds no reason."""
        if count:
            self.rejected[reason] = self.rejected.get(reason, 0) + count

    def add(self, part: "Stats") -> None:
        """Add the counts of `part` to these."""
        self.add_stage(part, True, True)

    def add_stage(self, part: "Stats", first: bool, last: bool) -> None:
        """Add the counts of one stage of a chain of pipes.

        The hub counts at the `first` stage what it received and offered, and the `last` stage what it sent.
        Each stage counts what waits, was dropped and was rejected there.
        """
        if first:
            self.received += part.received
            self.received_bytes += part.received_bytes
            self.offered += part.offered
        if last:
            self.sent += part.sent
            self.sent_bytes += part.sent_bytes
        self.queued += part.queued
        self.queued_bytes += part.queued_bytes
        self.noise_bytes += part.noise_bytes
        self.items += part.items
        self.said += part.said
        for reason, count in part.dropped.items():
            self.drop(reason, count)
        for reason, count in part.rejected.items():
            self.reject(reason, count)

    def copy(self) -> "Stats":
        """Return the same counts, which stay as they are now."""
        made = Stats()
        made.add(self)
        return made

    def mark(self) -> tuple[object, ...]:
        """Return what equals an earlier mark if nothing has been counted since."""
        mark = _NUMBERS(self)
        return (mark, dict(self.dropped), dict(self.rejected)) if self.dropped or self.rejected else mark

    def used(self) -> bool:
        """Return whether anything has been counted."""
        return bool(self.offered or self.received or self.rejected or self.dropped or self.noise_bytes)

    def since(self, base: "Stats") -> "Stats":
        """Return the difference of these counts to earlier ones, `base`."""
        return Stats(
            self.received - base.received,
            self.received_bytes - base.received_bytes,
            self.offered - base.offered,
            self.sent - base.sent,
            self.sent_bytes - base.sent_bytes,
            self.queued - base.queued,
            self.queued_bytes - base.queued_bytes,
            {reason: count - base.dropped.get(reason, 0) for reason, count in self.dropped.items()},
            {reason: count - base.rejected.get(reason, 0) for reason, count in self.rejected.items()},
            self.noise_bytes - base.noise_bytes,
            self.items - base.items,
            self.said - base.said,
        )

    def as_record(self) -> dict[str, int | dict[str, int]]:
        """Return all counts by name, as they are now."""
        return {
            "received": self.received,
            "received_bytes": self.received_bytes,
            "offered": self.offered,
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "queued": self.queued,
            "queued_bytes": self.queued_bytes,
            "dropped": dict(self.dropped),
            "rejected": dict(self.rejected),
            "noise_bytes": self.noise_bytes,
            "items": self.items,
            "said": self.said,
        }

    def balance(self) -> int:
        """Return the number of messages that the ledger does not account for; 0 if it balances."""
        return self.offered - self.sent - self.queued - sum(self.dropped.values())


class Sized(Protocol):
    """A batch: its size in bytes and the number of messages in it."""

    @property
    def size(self) -> int: ...
    @property
    def count(self) -> int: ...


@dataclass(slots=True)
class Account:
    """The counts of all pipes of one link so far, detached pipes included. No counter ever falls.

    `stats` is the sum over whole chains of pipes: received and offered by the hub, sent by the last pipe,
    dropped, rejected and queued by any. It balances as the ledger of a pipe does. `live` and `gone` are
    numbers of pipes. `due`: the messages that the hub had to offer, which are all that it passed on while a
    pipe was there, except the pipe's own. `heard`: the messages that came off the wire and were not rejected
    behind it.
    """

    stats: Stats = field(default_factory=Stats)
    live: int = 0
    gone: int = 0
    due: int = 0
    heard: int = 0

    def faults(self) -> Iterator[str]:
        """Yield a text for each of the account's three sums that is wrong."""
        stats = self.stats
        if stats.balance():
            yield f"{stats.balance()} of {stats.offered} offered are unaccounted for"
        if stats.offered != self.due:
            yield f"{stats.offered} were offered, {self.due} were due"
        if stats.received != self.heard:
            yield f"{self.heard} came in, {stats.received} were received"

    def copy(self) -> "Account":
        """Return an account that starts with the same counts."""
        return Account(self.stats.copy(), self.live, self.gone, self.due, self.heard)
