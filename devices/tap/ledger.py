"""Counts of a hub's links since the last look, as rows for the capture."""

from bus.hub import Hub
from bus.ledger import Stats
from capture.schema import ITEMS, Direction

Gain = tuple[str, Direction, str, int]
"""The link, the direction, the ledger's word, and the number of new messages."""
Counts = dict[tuple[str, Direction, str], int]
"""Messages by link, direction and the ledger's word."""


def counts(link: str, stats: Stats) -> Counts:
    """Return the counts of one link, in messages."""
    found: Counts = {(link, Direction.TX, reason): count for reason, count in stats.dropped.items()}
    found |= {(link, Direction.RX, reason): count for reason, count in stats.rejected.items()}
    found[link, Direction.RX, "received"] = stats.received
    found[link, Direction.TX, "sent"] = stats.sent
    found[link, Direction.RX, ITEMS], found[link, Direction.TX, ITEMS] = stats.items, stats.said
    return found


class Ledger:
    """Follows the counts of a hub's links from when it is made: earlier counts are left out."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._seen = self._now()

    def _now(self) -> Counts:
        found: Counts = {}
        for link, account in self._hub.accounts().items():
            found |= counts(link, account.stats)
        return found

    def gains(self) -> list[Gain]:
        """Return the messages counted since the last call."""
        now, before = self._now(), self._seen
        self._seen = now
        return [(*key, gain) for key, count in now.items() if (gain := count - before.get(key, 0))]
