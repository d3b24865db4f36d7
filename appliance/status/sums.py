"""The sums of a process's counts, by who is at the far end of the links. Pure.

A message that crosses a bus and a bridge counts at both, and at the joint between them twice. So what comes
from outside, and what goes there, is summed apart.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from appliance.status.rates import Rate, RowKey
from appliance.status.rows import FARS, Far, LinkRow
from bus.ledger import Account, Stats

_WITHOUT_ROW: Final[Mapping[str, Far]] = {"broker": "broker", "device": "outside"}
"""The far end of accounts without a row, by the kind of their part: of a device, its own clients."""
_NO_RATE: Final = Rate()


def far_of(rows: Iterable[LinkRow], kind: str) -> Far:
    """Return who is at the far end of an account of a part of some kind. `rows` are its links."""
    found = next((row.far for row in rows), None)
    return _WITHOUT_ROW.get(kind, "inside") if found is None else found


class Sums:
    """The sums of accounts: of all (`totals`), and for each far end (`sums`), with `rates` if known."""

    def __init__(self, rates: Mapping[RowKey, Rate]) -> None:
        self._rates = rates
        self._stats = {far: Stats() for far in FARS}
        self._found = {far: [_NO_RATE] for far in FARS}

    def add(self, far: Far, key: RowKey, account: Account) -> None:
        """Add the account of a link."""
        self._stats[far].add(account.stats)
        self._found[far].append(self._rates.get(key, _NO_RATE))

    def as_records(self) -> dict[str, Any]:
        """Return the sums as a status has them."""
        rate, known = {far: _sum(self._found[far]) for far in FARS}, bool(self._rates)
        whole = Stats()
        for one in self._stats.values():
            whole.add(one)
        records = {far: _record(self._stats[far], rate[far], known) for far in FARS}
        return {"totals": _record(whole, _sum(rate.values()), known), "sums": records}


def counts_of(stats: Stats) -> dict[str, Any]:
    """Return the counts of a ledger as a status has them."""
    return {"balance": stats.balance(), **stats.as_record()}


def _record(stats: Stats, rate: Rate, is_known: bool) -> dict[str, Any]:
    return counts_of(stats) | ({"rates": rate._asdict()} if is_known else {})


def _sum(rates: Iterable[Rate]) -> Rate:
    return Rate(*(round(sum(column), 2) for column in zip(*rates, strict=True)))
