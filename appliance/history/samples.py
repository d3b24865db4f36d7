"""The samples that are taken of a gateway once a second, for its curves. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from appliance.history.rings import Key, Kind
from appliance.status.labels import Labels
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
LINKS: Final = 300
"""The most links that are followed, the first that are seen: of 1,500 each sample would stand the loop."""
Accounts = Mapping[str, Mapping[str, Account]]


class Sampler:
    """The makers of samples: some are the growth since the sample before."""

    def __init__(self) -> None:
        self.left_out = 0
        self._before: Mapping[Key, float] = {}
        self._keys: dict[RowKey, _Keys] = {}
        self._labels = Labels(())

    def samples(
        self,
        rates: Mapping[RowKey, Rate],
        accounts: Accounts,
        transit: Iterable[Mapping[str, Any]],
        values: Iterable[Mapping[str, Any]],
        labels: Callable[[], Labels] = lambda: Labels(()),
        span_s: float = 1.0,
    ) -> dict[Key, float]:
        """Return the samples of now. `transit` and `values` are rows as of a status.

        The sample before was taken `span_s` ago.
        `labels` is asked for the names of links that are new.
        """
        found, totals = dict[Key, float](), dict[Key, float]()
        for row_key, keys in self._followed(rates, labels):
            rate = rates[row_key]
            found[keys.received], found[keys.sent] = rate.received_per_s, rate.sent_per_s
            account = accounts.get(row_key[0], {}).get(row_key[1])
            if account is not None:
                found[keys.queued] = account.stats.queued
                dropped = account.stats.dropped
                totals[keys.dropped] = sum(troubles(dropped).values()) if dropped else 0
        for row in transit:
            one, other = (self._labels.of(row["hub"], row[end]) for end in ("one", "other"))
            name = f"{row['hub']}: {one} to {other}"
            totals[Key("transit", name)], totals[Key("count", name)] = row["sum_s"], sum(row["counts"])
        found |= self._grown(totals, span_s)
        numbers = [row for row in values if "number" in row][:VALUES]
        return found | {Key("value", _called(row)): row["number"] for row in numbers}

    def _followed(
        self, rates: Mapping[RowKey, Rate], labels: Callable[[], Labels]
    ) -> list[tuple[RowKey, "_Keys"]]:
        """Return the links that are followed, with the keys of their series; those that stay go on."""
        self._keys = {row_key: keys for row_key, keys in self._keys.items() if row_key in rates}
        if len(self._keys) < LINKS:
            new = [row_key for row_key in rates if row_key not in self._keys][: LINKS - len(self._keys)]
            self._labels = labels() if new else self._labels
            self._keys |= {row_key: _keys_of(row_key[0], self._labels.of(*row_key)) for row_key in new}
        self.left_out = len(rates) - len(self._keys)
        return list(self._keys.items())

    def _grown(self, totals: Mapping[Key, float], span_s: float) -> dict[Key, float]:
        """Return the drops a second, and the mean transit time of the batches, since the last sample."""
        before, self._before = self._before, totals
        gains = {key: total - before[key] for key, total in totals.items() if key in before}
        found = {key: max(0.0, gain / span_s) for key, gain in gains.items() if key.kind == "dropped"}
        for key, gain_s in gains.items():
            if key.kind == "transit" and (count := gains.get(Key("count", key.name), 0)) > 0:
                found[key] = 1000 * gain_s / count
        return found


class _Keys(NamedTuple):
    """The keys of the series of a link."""

    received: Key
    sent: Key
    queued: Key
    dropped: Key


def _keys_of(hub: str, link: str) -> _Keys:
    return _Keys(*(Key(kind, f"{hub} | {link}") for kind in ("in", "out", "queued", "dropped")))


def _called(row: Mapping[str, Any]) -> str:
    """Return the name of a value's curve: another side may have one of its pattern and unit."""
    unit = f" ({row['unit']})" if row.get("unit") else ""
    return f"{row['on']} | {row['pattern']}{unit}"
