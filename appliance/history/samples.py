"""What is sampled of a gateway once a second, for its curves. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from appliance.history.rings import Key, Kind
from appliance.status.rates import Rate, RowKey
from bus.ledger import Account
from bus.reasons import troubles

KINDS: Final = (
    Kind("in", "messages/s", "mean", "messages that came in by a link"),
    Kind("out", "messages/s", "mean", "messages that left by a link"),
    Kind("queued", "messages", "max", "messages that wait to leave by a link"),
    Kind("dropped", "messages/s", "mean", "messages of a link that were dropped though nobody intended it"),
    Kind("transit", "ms", "mean", "time from one link to another, of the sampled batches"),
    Kind("value", "", "last", "the last values that are numbers"),
)
VALUES: Final = 256
"""The most values of devices."""
Accounts = Mapping[str, Mapping[str, Account]]


class Sampler:
    """The makers of samples: some are the growth since the sample before."""

    def __init__(self) -> None:
        self._before: Mapping[Key, float] = {}

    def samples(
        self,
        rates: Mapping[RowKey, Rate],
        accounts: Accounts,
        transit: Iterable[Mapping[str, Any]],
        values: Iterable[Mapping[str, Any]],
    ) -> dict[Key, float]:
        """Return the samples of now. `transit` and `values` are rows as of a status."""
        found = dict[Key, float]()
        for (hub, link), rate in rates.items():
            found[Key("in", f"{hub} | {link}")] = rate.received_per_s
            found[Key("out", f"{hub} | {link}")] = rate.sent_per_s
        totals = dict[Key, float]()
        for hub, links in accounts.items():
            for link, account in links.items():
                found[Key("queued", f"{hub} | {link}")] = account.stats.queued
                totals[Key("dropped", f"{hub} | {link}")] = sum(troubles(account.stats.dropped).values())
        for row in transit:
            name = f"{row['hub']}: {row['one']} to {row['other']}"
            totals[Key("transit", name)], totals[Key("count", name)] = row["sum_s"], sum(row["counts"])
        found |= self._grown(totals)
        numbers = [row for row in values if "number" in row][:VALUES]
        return found | {Key("value", _called(row)): row["number"] for row in numbers}

    def _grown(self, totals: Mapping[Key, float]) -> dict[Key, float]:
        """Return the drops since the last sample, and the mean transit time of the batches since then."""
        before, self._before = self._before, totals
        gains = {key: total - before[key] for key, total in totals.items() if key in before}
        found = {key: max(0.0, gain) for key, gain in gains.items() if key.kind == "dropped"}
        for key, gain_s in gains.items():
            if key.kind == "transit" and (count := gains.get(Key("count", key.name), 0)) > 0:
                found[key] = 1000 * gain_s / count
        return found


def _called(row: Mapping[str, Any]) -> str:
    unit = f" ({row['unit']})" if row.get("unit") else ""
    return f"{row['pattern']}{unit}"
