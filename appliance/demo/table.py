"""The table of the demo: the frames received, by sender and receiver. It is shown live and at the end."""

from collections.abc import Sequence

from rich.table import Table

from appliance.demo.members import Member


def expected(sender: Member, receiver: Member) -> int:
    return 0 if sender is receiver else sender.sent


def misses(members: Sequence[Member]) -> list[str]:
    """Return one line for each count that is wrong: all other members get a frame once, its sender never."""
    return [
        f"{receiver.name} received {receiver.received[sender.token]} frames of {sender.name}, "
        f"but {expected(sender, receiver)} were expected"
        for sender in members
        if sender.readings
        for receiver in members
        if receiver.received[sender.token] != expected(sender, receiver)
    ]


def table(members: Sequence[Member]) -> Table:
    """Return the table: a row for each sender, a column for each receiver."""
    made = Table(title="frames received, by sender (rows) and receiver (columns)")
    made.add_column("sender")
    made.add_column("on")
    made.add_column("sent", justify="right")
    for member in members:
        made.add_column(member.name, justify="right")
    for sender in members:
        if sender.readings:
            counts = [cell(sender, receiver) for receiver in members]
            made.add_row(sender.name, sender.segment, str(sender.sent), *counts)
    made.add_section()
    made.add_row("newest", "", "", *(member.last for member in members))
    return made


def cell(sender: Member, receiver: Member) -> str:
    count = receiver.received[sender.token]
    return "[dim]own[/dim]" if sender is receiver and not count else str(count)
