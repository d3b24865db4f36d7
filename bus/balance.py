"""The check that a hub accounts for every message (docs/policies.md)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from bus.hub import Pipe, chain
from bus.ledger import Account


class Counted(Protocol):
    """A hub, or what has its counts."""

    @property
    def name(self) -> str: ...
    @property
    def pipes(self) -> Collection[Pipe]: ...
    def accounts(self) -> Mapping[str, Account]: ...


def imbalances(hubs: Iterable[Counted]) -> list[str]:
    """Return one line for each sum of a ledger that is wrong.

    For each live pipe, and for each link with all its pipes so far: offered = sent + dropped by reason +
    queued. Besides, for each link: offered = messages that the hub passed on to it, and messages that came in
    = received + rejected. Do not call it from within a `send` or a `publish`.
    """
    return [f"{hub.name or 'bus'} | {fault}" for hub in hubs for fault in _faults(hub)]


def _faults(hub: Counted) -> Iterator[str]:
    for one in (one for pipe in hub.pipes for one in chain(pipe)):
        if missing := one.stats.balance():
            yield f"{one.name}: {missing} of {one.stats.offered} offered are unaccounted for"
    for link, account in hub.accounts().items():
        for fault in account.faults():
            yield f"{link}: {fault}"
