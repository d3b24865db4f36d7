"""Helpers of the tests of ledgers."""

from collections.abc import Mapping

from bus.ledger import Account

COUNTERS = ("received", "received_bytes", "offered", "sent", "sent_bytes", "noise_bytes")


def falls(before: Mapping[str, Account], after: Mapping[str, Account]) -> list[str]:
    """Return the names of counters that are smaller than before, or gone."""
    found = [link for link in before if link not in after]
    for link, old in before.items():
        new = after.get(link, old).stats
        found += [f"{link} {name}" for name in COUNTERS if getattr(new, name) < getattr(old.stats, name)]
        for name in ("dropped", "rejected"):
            was, is_now = getattr(old.stats, name), getattr(new, name)
            found += [f"{link} {reason}" for reason in was if is_now.get(reason, 0) < was[reason]]
    return found
