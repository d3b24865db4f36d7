"""Who sent and who received, as a table: live while the demo runs, and once more at its end."""

from collections.abc import Sequence

from rich.table import Table

from appliance.demo.members import Member


def expected(sender: Member, receiver: Member) -> int:
    return 0 if sender is receiver else sender.sent


def misses(members: Sequence[Member]) -> list[str]:
    """What does not balance, a line each: every other member gets a frame once, the sender never."""
    return [
        f"{receiver.name} received {receiver.received[sender.token]} of {sender.name}, "
        f"not {expected(sender, receiver)}"
        for sender in members
        if sender.readings
        for receiver in members
        if receiver.received[sender.token] != expected(sender, receiver)
    ]


def table(members: Sequence[Member]) -> Table:
    """A row for each sender, a column for each receiver."""
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
