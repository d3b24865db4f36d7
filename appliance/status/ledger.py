"""The ledger as text: the counts of each link since the start.

The ledger of a link balances if the messages that its hub offered = out + dropped by reason + queued.
"""

from collections.abc import Iterable, Iterator

from bus.balance import imbalances
from bus.hub import Hub
from bus.ledger import Account


def say_ledger(hubs: Iterable[Hub]) -> int:
    """Print the ledger of these hubs. Return the exit status: 0 if all of it balances, else 1."""
    hubs = list(hubs)
    faults = imbalances(hubs)
    print(ledger(hubs, faults), flush=True)
    return int(bool(faults))


def ledger(hubs: Iterable[Hub], faults: list[str]) -> str:
    """Return the ledger as text: a head, a line for each fault, and a line for each link below its hub."""
    accounts = {hub: found for hub in hubs if (found := hub.accounts())}
    verdict = "does NOT balance" if faults else "balanced"
    count = sum(map(len, accounts.values()))
    head = f"ledger of {count} link{'s' * (count != 1)}: {verdict}"
    return "\n".join([head, *(f"  {fault}" for fault in faults), *_lines(accounts)])


def _lines(accounts: dict[Hub, dict[str, Account]]) -> Iterator[str]:
    for hub, links in accounts.items():
        yield f"  {hub.name or 'bus'}"
        for link, account in links.items():
            yield f"    {link or 'this program'}: {line(account)}"


def line(account: Account) -> str:
    """Return the counts of one link.

    Queued and rejected messages, noise and live peers are named only if there are any.
    """
    stats = account.stats
    text = f"in {stats.received}, out {stats.sent}, dropped {reasons(stats.dropped) or '0'}"
    text += f", queued {stats.queued}" if stats.queued else ""
    text += f", rejected {reasons(stats.rejected)}" if stats.rejected else ""
    text += f", {stats.noise_bytes:,} bytes of noise" if stats.noise_bytes else ""
    return f"{text}; {account.live} live" if account.live else text


def reasons(counts: dict[str, int]) -> str:
    """Join counts by reason: "2 aged out, 1 queue full"."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
