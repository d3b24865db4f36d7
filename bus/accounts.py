"""The accounts of a hub: what all pipes of each link have counted so far, and what links missed without one.

Pure: it only adds up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary, ref

from bus.ledger import Account, Stats
from bus.vacancy import Filter, Vacancies, Vacancy
from bus.wire.batch import Batch

LINKS_MAX = 1024  # names of links that a hub tells apart; more of them share one account
OTHERS = "other links"
_SWEEP = 64


class Stage(Protocol):
    """One pipe of a chain: the attached pipe, or a pipe that it wraps."""

    @property
    def stats(self) -> Stats: ...
    @property
    def is_there(self) -> bool: ...


@dataclass(slots=True)
class _Part:
    """The part of one ledger that counts: all beyond `base`, of the `first` or `last` stage of a chain."""

    link: str
    stage: "ref[Stage]"
    base: Stats | None
    first: bool
    last: bool

    def ledger(self, stats: Stats) -> Stats:
        """Return the ledger that the stage has now; `stats`, its last one, if the stage is gone."""
        stage = self.stage()
        return stats if stage is None else stage.stats

    def add_to(self, account: Account, stats: Stats) -> None:
        stats, total = self.ledger(stats), account.stats
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
    place: str  # the name of the link itself; that of its account differs beyond `LINKS_MAX`
    parts: dict[Stats, _Part]
    end: "ref[Stage]"
    joined: int
    held: int = 0

    @property
    def is_there(self) -> bool:
        """Whether a peer is at the end of the chain."""
        stage = self.end()
        return stage is None or stage.is_there

    def due(self, passed: int) -> int:
        return passed - self.joined - next(iter(self.parts)).received


class Accounts:
    """The accounts of a hub, by the name of the link. They need memory for links and live pipes only.

    What a pipe counts after its detachment still belongs to its account, so its ledger is kept until nobody
    holds the pipe any more. A device has one ledger for all its openings; an account adds the new counts of
    that ledger as long as it exists. `passed` is the number of messages that the hub has passed on so far.
    A link that is enlisted has an account at once, and while it has no pipe drops what it is due.
    """

    __slots__ = (
        "_dormant", "_folded", "_gone", "_kept", "_left", "_live", "_mark", "_sum", "_sweep_at", "_vacancies"
    )  # fmt: skip

    def __init__(self) -> None:
        self._gone: dict[str, Account] = {}
        self._live: dict[int, _Chain] = {}
        self._left: dict[Stats, _Part] = {}
        self._dormant: WeakKeyDictionary[Stats, _Part] = WeakKeyDictionary()
        self._kept: list[tuple[str, Stats]] = []
        self._folded: dict[str, Stats] = {}
        self._vacancies = Vacancies()
        self._sweep_at = _SWEEP
        self._mark: object = None  # of `_sum`, which is as it was while this is; None: it is to be made anew
        self._sum: Mapping[str, Account] = {}

    def _name(self, link: str) -> str:
        """Return the name of the link's account, and open the account if it is new."""
        name = link if link in self._gone or len(self._gone) < LINKS_MAX else OTHERS
        self._gone.setdefault(name, Account())
        return name

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts of no pipe to an account. Without any counts no account is made."""
        self._mark = None
        self._kept.append((link, stats))

    def fold(self, link: str, stats: Stats) -> None:
        """Add the final counts of a ledger, if it is kept, to one sum for its link, and forget the ledger."""
        if (link, stats) not in self._kept:
            return
        self._mark = None
        self._kept.remove((link, stats))
        self._folded.setdefault(link, Stats()).add(stats)

    def inherit(self, accounts: Mapping[str, Account], rename: Callable[[str], str]) -> None:
        """Continue the counts of other accounts, under other names. Their live pipes are to enter here."""
        self._mark = None
        for link, account in accounts.items():
            mine = self._gone[self._name(rename(link))]
            mine.stats.add(account.stats)
            mine.gone += account.gone
            mine.due += account.due
            mine.heard += account.heard

    def enlist(self, link: str, reason: str, passed: int, filter: Filter | None) -> None:
        """Note that a link is open, with or without a pipe. Without one it drops by `reason`."""
        self._mark = None
        self._name(link)
        self._vacancies.enlist(link, reason, passed, filter)

    def strike(self, link: str, passed: int) -> None:
        """Note that an enlisted link has closed. It is no error if none of that name is open."""
        self._mark = None
        if (vacancy := self._vacancies.strike(link, passed)) is not None:
            _add_vacancy(self._gone[self._name(link)], vacancy)

    def miss(self, link: str, batch: Batch) -> None:
        """Note that one link is offered a batch that is not published. With a pipe, that pipe counts it."""
        self._vacancies.miss(link, batch)

    def looking(self) -> tuple[Vacancy, ...]:
        """Return the vacancies that are to look at each batch now; it changes with links and pipes."""
        return self._vacancies.looking()

    def enter(self, key: object, link: str, stages: Iterable[Stage], passed: int) -> None:
        """Follow a pipe, known as `key`, and the pipes that it wraps, the outermost first."""
        self._mark = None
        self._vacancies.come(link, passed)
        name, chain = self._name(link), list(stages)
        first, last = chain[0], chain[-1]
        parts = {
            stage.stats: _Part(name, ref(stage), self._base(stage.stats), stage is first, stage is last)
            for stage in chain
        }
        self._live[id(key)] = _Chain(name, link, parts, ref(last), passed - chain[0].stats.received)

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
        self._mark = None
        self._vacancies.go(chain.place, passed)
        account = self._gone[chain.link]
        account.gone += 1
        account.due += chain.due(passed)
        self._left |= chain.parts
        if len(self._left) >= self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Forget ledgers whose pipe nobody holds any more. All others are followed as before."""
        if not (self._left or self._dormant):  # to iterate over weak references costs much
            self._sweep_at = _SWEEP
            return
        ended = [stats for stats, part in self._left.items() if part.stage() is None]
        for stats in ended:
            self._dormant[stats] = self._left.pop(stats)
        for stats, part in list(self._dormant.items()):
            part.settle(self._gone[part.link], stats)
        self._sweep_at = 2 * len(self._left) + _SWEEP

    def read(self, passed: int) -> Mapping[str, Account]:
        """Return all accounts as they are now, in the order of their names; the same object if none changed.

        Nobody may change it, and it does not change by itself.
        """
        mark = self._now(passed)
        if mark != self._mark:
            self._sum = self._add_up(passed)
            self._mark = mark
        return self._sum

    def _now(self, passed: int) -> object:
        """Return a mark that is another one once anything has been counted since all else was the same.

        A monitor asks each hub a few times a second, and most of a large gateway's have nothing new. What
        counts messages pays nothing for it.
        """
        found: list[object] = [passed]
        found += [account.due for account in self._gone.values()]
        found += [vacancy.due for _, vacancy in self._vacancies.read(passed)]
        found += [stats.mark() for _, stats in self._kept]
        for chain in self._live.values():
            found += chain.held, chain.is_there
            found += [part.ledger(stats).mark() for stats, part in chain.parts.items()]
        if self._left or self._dormant:  # to iterate over weak references costs much
            parts = (*self._left.items(), *self._dormant.items())
            found += [(part.stage() is None, part.ledger(stats).mark()) for stats, part in parts]
        return found

    def _add_up(self, passed: int) -> dict[str, Account]:
        self._sweep()
        found = {link: account.copy() for link, account in self._gone.items()}
        for link, stats in (*self._folded.items(), *self._kept):
            if stats.used():
                account = found.setdefault(link, Account())
                account.stats.add(stats)
                account.heard += stats.received
                account.due += stats.offered
        for link, vacancy in self._vacancies.read(passed):
            _add_vacancy(found[link if link in found else OTHERS], vacancy)
        for stats, part in self._left.items():
            part.add_to(found[part.link], stats)
        for chain in self._live.values():
            account = found[chain.link]
            account.live += chain.is_there
            account.heard -= chain.held if len(chain.parts) > 1 else 0
            account.due += chain.due(passed)
            for stats, part in chain.parts.items():
                part.add_to(account, stats)
        return dict(sorted(found.items()))


def _add_vacancy(account: Account, vacancy: Vacancy) -> None:
    account.stats.add(vacancy.stats)
    account.due += vacancy.due
