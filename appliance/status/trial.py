"""The outcome of `run --test`: the messages that crossed each hub, as a table and a verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from appliance.status.labels import Labels
from appliance.status.ledger import Parted
from appliance.status.rows import LinkRow
from bus.balance import Counted, imbalances
from bus.ledger import Account

_NONE = Labels(())
_HEAD = ("link", "in", "out", "dropped", "rejected", "filtered")


def say_outcome(hubs: Iterable[Counted], down: Sequence[str], labels: Labels) -> int:
    """Print the table, the lines about links that are not up, and the verdict. Return the exit status.

    The status is 0 if a message crossed and every ledger balances, else 1.
    """
    hubs = list(hubs)
    faults, count = imbalances(hubs), crossed(hubs)
    lines = [*table(hubs, labels), *down, *faults]
    print("\n".join([*lines, _verdict(count, faults)]), flush=True)
    return int(not count or bool(faults))


def crossed(hubs: Iterable[Counted]) -> int:
    """Return the number of messages that left by links of hubs on which another link had brought some.

    A message that several links sent counts for each of them. Events of the gateway count as well, if any
    message came in by another link.
    """
    return sum(_crossed(hub.accounts()) for hub in hubs)


def _crossed(accounts: Mapping[str, Account]) -> int:
    brought = {link for link, account in accounts.items() if account.stats.received}
    return sum(account.stats.sent for link, account in accounts.items() if brought - {link})


def _verdict(count: int, faults: list[str]) -> str:
    balance = "the ledger does NOT balance" if faults else "every message is accounted for"
    return f"{count or 'no'} message{'s' * (count != 1)} crossed; {balance}"


def not_up(rows: Iterable[LinkRow]) -> Iterator[str]:
    """Yield a line for each link that is not up."""
    for row in {row.link: row for row in rows}.values():  # a service has a row on each of its buses
        if row.link.state != "up":
            yield f"not up: {row.source}: {row.link.state}{f' ({row.fault})' if row.fault else ''}"


def table(hubs: Iterable[Counted], labels: Labels = _NONE) -> list[str]:
    """Return the lines of the table: a row for each link that counted anything or has a peer, by hub."""
    rows: list[Sequence[str]] = [_HEAD]
    for hub in hubs:
        accounts = {link: one for link, one in hub.accounts().items() if one.stats.used() or one.live}
        rows += [(hub.name or "bus", *[""] * (len(_HEAD) - 1))] if accounts else []
        rows += [_row(labels.of(hub.name, link), account) for link, account in accounts.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [_line(row, widths) for row in rows]


def _row(link: str, account: Account) -> Sequence[str]:
    stats, told = account.stats, Parted(account.stats.dropped, account.stats.rejected)
    shown = told.dropped or "0", told.rejected or "0", told.filtered or "0"
    return f"  {link or 'this program'}", str(stats.received), str(stats.sent), *shown


def _line(row: Sequence[str], widths: list[int]) -> str:
    link, received, sent, dropped, rejected, filtered = row
    numbers = f"{link:{widths[0]}}  {received:>{widths[1]}}  {sent:>{widths[2]}}"
    return f"{numbers}  {dropped:>12}  {rejected:>12}  {filtered:>12}".rstrip()
