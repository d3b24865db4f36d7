"""The links that alarms are about, and their values. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from appliance.status.rates import Rate, RowKey
from appliance.status.rows import LinkRow
from bus.ledger import Account
from bus.reasons import troubles
from topologies.model.alarms import AlarmSpec

Accounts = Mapping[str, Mapping[str, Account]]


def by_part(rows: Iterable[LinkRow]) -> Mapping[str, list[LinkRow]]:
    """Return the rows of each part, once for each link: a plant may have hundreds of links and of alarms."""
    found = defaultdict[str, list[LinkRow]](list)
    for row in {row.link: row for row in rows}.values():
        found[row.hub.name].append(row)
    return found


def meant(spec: AlarmSpec, parts: Mapping[str, list[LinkRow]]) -> Iterator[LinkRow]:
    """Yield the rows of the links that an alarm is about: by number, medium, name or address of the side."""
    end = spec.end
    for row in parts.get(spec.part, ()):
        if not end or end in _words(row):
            yield row


def _words(row: LinkRow) -> tuple[str, ...]:
    return *row.name.partition("/")[0].split(), row.shown, row.called, row.link.name, row.link.url


class LinkValues:
    """The values of links. Drops are counted from one `look` to the next, a second apart at least."""

    def __init__(self) -> None:
        self._rates: Mapping[RowKey, Rate] = {}
        self._accounts: Accounts = {}
        self._dropped: dict[RowKey, int] = {}
        self._drops_per_s: dict[RowKey, float] = {}
        self._at_s = float("-inf")

    def look(self, rates: Mapping[RowKey, Rate], accounts: Accounts, now_s: float) -> None:
        """Take what a monitor has found."""
        self._rates, self._accounts = rates, accounts
        span_s = now_s - self._at_s
        if span_s >= 1:
            now = {
                (hub, name): sum(troubles(one.stats.dropped).values())
                for hub, links in accounts.items()
                for name, one in links.items()
                if one.stats.dropped
            }
            before, self._dropped = self._dropped, now
            if self._at_s > float("-inf"):
                grown = {key: count - before.get(key, 0) for key, count in now.items()}
                self._drops_per_s = {key: max(0, count) / span_s for key, count in grown.items()}
            self._at_s = now_s

    def of(self, what: str | None, key: RowKey) -> float | None:
        """Return a value of a link: `in`, `out` or `dropped` a second, or `queued`; None if it has none."""
        if what in ("in", "out"):
            rate = self._rates.get(key)
            return None if rate is None else rate.received_per_s if what == "in" else rate.sent_per_s
        account = self._accounts.get(key[0], {}).get(key[1])
        if what == "queued":
            return None if account is None else account.stats.queued
        return None if what is None or account is None else self._drops_per_s.get(key, 0.0)
