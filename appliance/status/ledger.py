"""The ledger as text: the counts of each link since the start.

The ledger of a link balances if the messages that its hub offered = out + dropped by reason + queued. What
policies dropped, or was there another way, is named apart, as `filtered`.
"""

from collections.abc import Iterable, Iterator, Mapping

from appliance.status.labels import Labels
from bus.balance import Counted, imbalances
from bus.ledger import Account
from bus.reasons import is_intended


def say_ledger(hubs: Iterable[Counted], labels: Labels | None = None) -> int:
    """Print the ledger of these hubs. Return the exit status: 0 if all of it balances, else 1.

    With `labels`, links are called as in the file.
    """
    hubs = list(hubs)
    faults = imbalances(hubs)
    print(ledger(hubs, faults, labels), flush=True)
    return int(bool(faults))


def ledger(hubs: Iterable[Counted], faults: list[str], labels: Labels | None = None) -> str:
    """Return the ledger as text: a head, a line for each fault, and a line for each link below its hub."""
    accounts = {hub: found for hub in hubs if (found := hub.accounts())}
    verdict = "does NOT balance" if faults else "balanced"
    count = sum(map(len, accounts.values()))
    head = f"ledger of {count} link{'s' * (count != 1)}: {verdict}"
    return "\n".join([head, *(f"  {fault}" for fault in faults), *_lines(accounts, labels)])


def _lines(accounts: Mapping[Counted, Mapping[str, Account]], labels: Labels | None) -> Iterator[str]:
    for hub, links in accounts.items():
        yield f"  {hub.name or 'bus'}"
        for link, account in links.items():
            named = link if labels is None else labels.of(hub.name, link)
            yield f"    {named or 'this program'}: {line(account)}"


def line(account: Account) -> str:
    """Return the counts of one link.

    Queued, rejected and filtered messages, noise and live peers are named only if there are any.
    """
    stats, told = account.stats, Parted(account.stats.dropped, account.stats.rejected)
    text = f"in {stats.received}, out {stats.sent}, dropped {told.dropped or '0'}"
    text += f", queued {stats.queued}" if stats.queued else ""
    text += f", rejected {told.rejected}" if told.rejected else ""
    text += f", filtered: {told.filtered}" if told.filtered else ""
    text += f", {stats.noise_bytes:,} bytes of noise" if stats.noise_bytes else ""
    return f"{text}; {account.live} live" if account.live else text


class Parted:
    """The counts of one link as texts, "" for none: `dropped` and `rejected`, which nobody asked for, and
    `filtered`, which is both of normal filtering: "dropped 3 pattern; rejected 2 echo"."""

    def __init__(self, dropped: Mapping[str, int], rejected: Mapping[str, int]) -> None:
        (self.dropped, left), (self.rejected, kept) = map(_parted, (dropped, rejected))
        named = ("dropped", left), ("rejected", kept)
        self.filtered = "; ".join(f"{how} {text}" for how, text in named if text)


def _parted(counts: Mapping[str, int]) -> tuple[str, str]:
    asked = {reason: count for reason, count in counts.items() if is_intended(reason)}
    return reasons({reason: count for reason, count in counts.items() if reason not in asked}), reasons(asked)


def reasons(counts: Mapping[str, int]) -> str:
    """Join counts by reason: "2 aged out, 1 queue full"."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
