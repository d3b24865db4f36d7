"""The ledger of a pipe, and the accounts of a hub: what all pipes of each link have counted so far.

Pure: it only adds up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary, ref

LINKS_MAX = 1024  # names of links that a hub tells apart; more of them share one account
OTHERS = "other links"
_SWEEP = 64


@dataclass(slots=True, eq=False, weakref_slot=True)
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

    def receive(self, batch: "Sized") -> None:
        """Count a batch that the peer sent us. Hubs call this once for each published batch."""
        self.received += batch.count
        self.received_bytes += len(batch.data)

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
        for reason, count in part.dropped.items():
            self.drop(reason, count)
        for reason, count in part.rejected.items():
            self.reject(reason, count)

    def copy(self) -> "Stats":
        """Return the same counts, which stay as they are now."""
        made = Stats()
        made.add(self)
        return made

    def used(self) -> bool:
        """Return whether anything has been counted."""
        return bool(self.offered or self.received or self.rejected or self.dropped)

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
        }

    def balance(self) -> int:
        """Return the number of messages that the ledger does not account for; 0 if it balances."""
        return self.offered - self.sent - self.queued - sum(self.dropped.values())


class Sized(Protocol):
    """A batch: its data and the number of messages in it."""

    @property
    def data(self) -> bytes | bytearray | memoryview: ...
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


class Stage(Protocol):
    """One pipe of a chain: the attached pipe, or a pipe that it wraps."""

    @property
    def stats(self) -> Stats: ...


@dataclass(slots=True)
class _Part:
    """The part of one ledger that counts: all beyond `base`, of the `first` or `last` stage of a chain."""

    link: str
    stage: "ref[Stage]"
    base: Stats | None
    first: bool
    last: bool

    def add_to(self, account: Account, stats: Stats) -> None:
        stage, total = self.stage(), account.stats
        if stage is not None:
            stats = stage.stats
        gain = stats if self.base is None else stats.since(self.base)
        total.add_stage(gain, self.first, self.last)
        if self.last:
            account.heard += gain.received
        else:
            account.heard -= sum(gain.rejected.values())

    def settle(self, account: Account, stats: Stats) -> None:
        """Add the counts since the last call to the account, and set `base` to the present counts."""
        self.add_to(account, stats)
        self.base = stats.copy()


@dataclass(slots=True)
class _Chain:
    """One attached pipe as an account follows it: its ledgers, and what its hub had passed on before.

    `held`: what came in by the pipe, and waits in the hub.
    """

    link: str
    parts: dict[Stats, _Part]
    joined: int
    held: int = 0

    def due(self, passed: int) -> int:
        return passed - self.joined - next(iter(self.parts)).received


class Accounts:
    """The accounts of a hub, by the name of the link. They need memory for links and live pipes only.

    What a pipe counts after its detachment still belongs to its account, so its ledger is kept until nobody
    holds the pipe any more. A device has one ledger for all its openings; an account adds the new counts of
    that ledger as long as it exists. `passed` is the number of messages that the hub has passed on so far.
    """

    __slots__ = ("_dormant", "_folded", "_gone", "_kept", "_left", "_live", "_sweep_at")

    def __init__(self) -> None:
        self._gone: dict[str, Account] = {}
        self._live: dict[int, _Chain] = {}
        self._left: dict[Stats, _Part] = {}
        self._dormant: WeakKeyDictionary[Stats, _Part] = WeakKeyDictionary()
        self._kept: list[tuple[str, Stats]] = []
        self._folded: dict[str, Stats] = {}
        self._sweep_at = _SWEEP

    def _name(self, link: str) -> str:
        """Return the name of the link's account, and open the account if it is new."""
        name = link if link in self._gone or len(self._gone) < LINKS_MAX else OTHERS
        self._gone.setdefault(name, Account())
        return name

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts of no pipe to an account. Without any counts no account is made."""
        self._kept.append((link, stats))

    def fold(self, link: str, stats: Stats) -> None:
        """Add the final counts of a kept ledger to one sum for its link, and forget the ledger."""
        self._kept.remove((link, stats))
        self._folded.setdefault(link, Stats()).add(stats)

    def inherit(self, accounts: Mapping[str, Account], rename: Callable[[str], str]) -> None:
        """Continue the counts of other accounts, under other names. Their live pipes are to enter here."""
        for link, account in accounts.items():
            mine = self._gone[self._name(rename(link))]
            mine.stats.add(account.stats)
            mine.gone += account.gone
            mine.due += account.due
            mine.heard += account.heard

    def enter(self, key: object, link: str, stages: Iterable[Stage], passed: int) -> None:
        """Follow a pipe, known as `key`, and the pipes that it wraps, the outermost first."""
        name, chain = self._name(link), list(stages)
        first, last = chain[0], chain[-1]
        parts = {
            stage.stats: _Part(name, ref(stage), self._base(stage.stats), stage is first, stage is last)
            for stage in chain
        }
        self._live[id(key)] = _Chain(name, parts, passed - chain[0].stats.received)

    def _base(self, stats: Stats) -> Stats | None:
        """Return the counts of a ledger that other hubs, or these accounts, have added already."""
        known = self._left.pop(stats, None) or self._dormant.pop(stats, None)
        if known is not None:
            known.settle(self._gone[known.link], stats)
            return known.base
        return stats.copy() if stats.used() else None

    def lend(self, link: str, count: int) -> None:
        """Note that one pipe of a link is offered `count` messages, beside those passed on to all pipes."""
        self._gone[self._name(link)].due += count

    def note_waiting(self, key: object, count: int) -> None:
        """Note that so many messages more of a pipe wait in the hub. It is no error if it is not here."""
        chain = self._live.get(id(key))
        if chain is not None:
            chain.held += count

    def leave(self, key: object, passed: int) -> None:
        """Note that a pipe was detached. It is no error if it is not here."""
        chain = self._live.pop(id(key), None)
        if chain is None:
            return
        account = self._gone[chain.link]
        account.gone += 1
        account.due += chain.due(passed)
        self._left |= chain.parts
        if len(self._left) >= self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Forget ledgers whose pipe nobody holds any more. All others are followed as before."""
        ended = [stats for stats, part in self._left.items() if part.stage() is None]
        for stats in ended:
            self._dormant[stats] = self._left.pop(stats)
        for stats, part in list(self._dormant.items()):
            part.settle(self._gone[part.link], stats)
        self._sweep_at = 2 * len(self._left) + _SWEEP

    def read(self, passed: int) -> dict[str, Account]:
        """Return a copy of all accounts as they are now, in the order of their names."""
        self._sweep()
        found = {link: account.copy() for link, account in self._gone.items()}
        for link, stats in (*self._folded.items(), *self._kept):
            if stats.used():
                account = found.setdefault(link, Account())
                account.stats.add(stats)
                account.heard += stats.received
                account.due += stats.offered
        for stats, part in self._left.items():
            part.add_to(found[part.link], stats)
        for chain in self._live.values():
            account = found[chain.link]
            account.live += 1
            account.heard -= chain.held if len(chain.parts) > 1 else 0
            account.due += chain.due(passed)
            for stats, part in chain.parts.items():
                part.add_to(account, stats)
        return dict(sorted(found.items()))
