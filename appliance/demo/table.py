"""The table of the demo: the frames received, by sender and receiver. It is shown live and at the end."""

from collections.abc import Sequence

from rich.table import Table

from appliance.demo.members import Member


def expected(sender: Member, receiver: Member) -> int:
    """Return how many frames of a sender a receiver should get: none of its own."""
    return 0 if sender is receiver else sender.sent


def misses(members: Sequence[Member]) -> list[str]:
    """Return a line for each wrong count: all other members must get a frame once, its sender never."""
    return [
        f"{receiver.name} received {receiver.received[sender.token]} frames of {sender.name}, "
        f"but {expected(sender, receiver)} were expected"
        for sender in members
        if sender.readings
        for receiver in members
        if receiver.received[sender.token] != expected(sender, receiver)
    ]


def matrix(members: Sequence[Member]) -> Table:
    """Return a row for each sender and a column for each receiver."""
    made = _table("sender", "on", "sent", *(member.name for member in members))
    for sender in members:
        if sender.readings:
            got = [cell(sender, receiver) for receiver in members]
            made.add_row(sender.name, sender.segment, str(sender.sent), *got)
    return made


def lines(members: Sequence[Member]) -> Table:
    """Return a table for 50 columns: for each sender the least and the most that another member received."""
    made = _table("sender", "on", "sent", "received")
    for sender in members:
        if sender.readings:
            got = [other.received[sender.token] for other in members if other is not sender]
            span = str(min(got)) if min(got) == max(got) else f"{min(got)} to {max(got)}"
            made.add_row(sender.name, sender.segment, str(sender.sent), span)
    return made


def _table(*columns: str) -> Table:
    """Return an empty table without borders and colours, which a pipe takes too."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for number, name in enumerate(columns):
        made.add_column(name, justify="left" if number < 2 else "right", no_wrap=True)
    return made


def cell(sender: Member, receiver: Member) -> str:
    """Return the text of a cell: the frames that the receiver got from the sender."""
    count = receiver.received[sender.token]
    return "own" if sender is receiver and not count else str(count)
