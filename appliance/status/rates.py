"""Rates of links: the growth of their totals per second, sampled about once a second. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from bus.ledger import Account

SAMPLE_S = 1.0


class Rate(NamedTuple):
    """The rate of a link: messages and bytes per second, in and out."""

    received_per_s: float = 0.0
    sent_per_s: float = 0.0
    received_bytes_per_s: float = 0.0
    sent_bytes_per_s: float = 0.0


_NONE: Final = Rate()

RowKey = tuple[str, str]
"""The identity of a row in a status: the names of a hub and of a link in its accounts."""


class Rates:
    """The rates of all rows. Call `sample` with the accounts of all hubs, as often as you like."""

    def __init__(self) -> None:
        self.now: Mapping[RowKey, Rate] = {}
        self._before: dict[RowKey, tuple[int, int, int, int]] = {}
        self._at_s = float("-inf")

    def sample(self, accounts: Mapping[str, Mapping[str, Account]], now_s: float) -> None:
        """Compute the rates since the last sample, if that is a second ago. `now_s` is monotonic."""
        span_s = now_s - self._at_s
        if span_s < SAMPLE_S:
            return
        totals = {
            (hub, link): (stats.received, stats.sent, stats.received_bytes, stats.sent_bytes)
            for hub, links in accounts.items()
            for link, stats in ((link, account.stats) for link, account in links.items())
        }
        self.now = {key: self._rate(key, new, span_s) for key, new in totals.items()}
        self._before, self._at_s = totals, now_s

    def _rate(self, key: RowKey, new: tuple[int, int, int, int], span_s: float) -> Rate:
        old = self._before.get(key)
        if old is None or old == new:
            return _NONE
        return Rate(*(round(growth(a, b) / span_s, 2) for a, b in zip(old, new, strict=True)))


def growth(old: int, new: int) -> int:
    """Return by how much a total has grown; one that fell is of a part that began anew, and counts from 0."""
    return new - old if new >= old else new
