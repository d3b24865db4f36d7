"""The counts of a process at its end, also of what its links counted when they closed."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from appliance.status.labels import Labels
from appliance.status.ledger import say_ledger
from bus.balance import Counted
from bus.hub import Pipe
from bus.ledger import Account


class Ended:
    """A hub that will close: its counts as they are then, its peers as they are now."""

    def __init__(self, hub: Counted) -> None:
        self.name, self._hub = hub.name, hub
        self._live = {link: account.live for link, account in hub.accounts().items()}

    @property
    def pipes(self) -> Collection[Pipe]:
        return self._hub.pipes

    def accounts(self) -> Mapping[str, Account]:
        return {
            link: replace(account, live=self._live.get(link, 0))
            for link, account in self._hub.accounts().items()
        }


def ended(hubs: Iterable[Counted]) -> list[Ended]:
    """Return what has the counts of hubs once they have closed. Call it before they do."""
    return [Ended(hub) for hub in hubs]


def last_ledger(hubs: Iterable[Counted], labels: Labels | None = None) -> Callable[[], int]:
    """Return what says the ledger of hubs, as `say_ledger` does, once they have closed."""
    return partial(say_ledger, ended(hubs), labels)
