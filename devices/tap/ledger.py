"""Counts of a hub's links since the last look, as rows for the capture."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from bus.hub import Hub
from bus.ledger import Stats
from capture.schema import ITEMS, Direction

PART_ROWS = 256  # of a record: some tens of kB, for which a small ring has room
Gain = tuple[str, Direction, str, int]
"""The link, the direction, the ledger's word, and the number of new messages."""
LedgerRow = tuple[str, str, int, str, int]
"""The segment, the link, the direction, the ledger's word, and the number of new messages."""
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


class Owed:
    """The rows that are not recorded yet, by the place of their hub. Rows of one name are added up.

    So they need memory for the names of links and words, however long there is no room to record them.
    """

    def __init__(self) -> None:
        self._counts: dict[bytes, Counter[tuple[str, str, int, str]]] = defaultdict(Counter)

    def add(self, place: bytes, rows: Sequence[LedgerRow]) -> None:
        """Owe these rows, too."""
        counts = self._counts[place]
        for bus, link, direction, word, count in rows:
            counts[bus, link, direction, word] += count

    def parts(self) -> Iterator[tuple[bytes, list[LedgerRow]]]:
        """Yield what is owed, at most `PART_ROWS` rows at a time, with their place."""
        for place, counts in list(self._counts.items()):
            rows = [(*key, count) for key, count in counts.items()]
            for at in range(0, len(rows), PART_ROWS):
                yield place, rows[at : at + PART_ROWS]

    def remove(self, place: bytes, rows: Sequence[LedgerRow]) -> None:
        """Owe these rows no longer: they are recorded."""
        counts = self._counts[place]
        for bus, link, direction, word, _ in rows:
            del counts[bus, link, direction, word]
