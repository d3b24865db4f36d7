"""The vacancies of a hub: what each link was due while it had no pipe, which is dropped with a reason. Pure.

A link is enlisted while it is open. Without a pipe each message counts once for it, however many peers could
be there. A plain link costs nothing meanwhile: the hub has counted what it passed on, and the difference is
what the link missed.
"""

from collections.abc import Callable, Iterator
from typing import Final

from bus.ledger import Stats
from bus.wire.batch import Batch

NO_PEER: Final = "no peer"
"""The reason at a link that waits for peers or dials one."""
NO_DEVICE: Final = "no device"
"""The reason at a link that opens a device, and at one that could not be opened."""

Filter = Callable[[Batch, Stats], int]
"""A function that counts in the ledger what policies keep from a link, and returns how many are left."""


class Vacancy:
    """The place of one link on a hub. While it has no pipe, `stats` counts what it is due as dropped.

    `filter`: looks at each batch first (`look`), because policies keep some messages from the link. `links`
    is the number of open links of that name, and `due` what the hub had to offer to none.
    """

    __slots__ = ("due", "filter", "links", "reason", "since", "stats")

    def __init__(self, reason: str, filter: Filter | None) -> None:
        self.reason, self.filter = reason, filter
        self.stats = Stats()
        self.links = self.due = 0
        self.since: int | None = None  # what the hub had passed on when the last pipe left; None: one is here

    def begin(self, passed: int) -> None:
        self.since = passed

    def end(self, passed: int) -> None:
        self.settle(passed)
        self.since = None

    def settle(self, passed: int) -> None:
        """Count what the hub has passed on since the last call."""
        if self.since is None:
            return
        count, self.since = passed - self.since, passed
        self.due += count
        if self.filter is None:
            self.stats.offered += count
            self.stats.drop(self.reason, count)

    def look(self, batch: Batch) -> None:
        """Count a batch that is offered now, and that `settle` does not count."""
        self.stats.offered += batch.count
        missed = batch.count if self.filter is None else self.filter(batch, self.stats)
        self.stats.drop(self.reason, missed)


class Vacancies:
    """The vacancies of a hub by the name of the link. `passed` is what the hub has passed on so far."""

    __slots__ = ("_of", "_pipes")

    def __init__(self) -> None:
        self._of: dict[str, Vacancy] = {}
        self._pipes: dict[str, int] = {}

    def enlist(self, link: str, reason: str, passed: int, filter: Filter | None) -> None:
        """Note that a link is open. Links of one name share a place."""
        place = self._of.get(link)
        if place is None:
            place = self._of[link] = Vacancy(reason, filter)
            if not self._pipes.get(link):
                place.begin(passed)
        place.links += 1

    def strike(self, link: str, passed: int) -> Vacancy | None:
        """Note that a link has closed. Return its settled vacancy if it was the last one of that name."""
        place = self._of.get(link)
        if place is None:
            return None
        place.links -= 1
        if place.links:
            return None
        place.end(passed)
        return self._of.pop(link)

    def come(self, link: str, passed: int) -> None:
        """Note that a pipe of a link is there."""
        count = self._pipes[link] = self._pipes.get(link, 0) + 1
        if count == 1 and (place := self._of.get(link)) is not None:
            place.end(passed)

    def go(self, link: str, passed: int) -> None:
        """Note that a pipe of a link has gone."""
        count = self._pipes[link] = self._pipes[link] - 1
        if count:
            return
        del self._pipes[link]
        if (place := self._of.get(link)) is not None:
            place.begin(passed)

    def miss(self, link: str, batch: Batch) -> None:
        """Count a batch that is offered to one link only, if it has no pipe."""
        place = self._of.get(link)
        if place is not None and place.since is not None:
            place.look(batch)
            place.due += batch.count

    def looking(self) -> tuple[Vacancy, ...]:
        """Return the vacancies that are to look at each batch now."""
        return tuple(one for one in self._of.values() if one.since is not None and one.filter is not None)

    def read(self, passed: int) -> Iterator[tuple[str, Vacancy]]:
        """Yield each link that is open with its settled vacancy."""
        for link, place in self._of.items():
            place.settle(passed)
            yield link, place
