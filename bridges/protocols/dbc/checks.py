"""Search for what is wrong between a topology and a database of CAN messages. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bridges.protocols.dbc.fills import FILLS, chosen_for, seems_filled
from bridges.protocols.dbc.layout import Database, Message
from bridges.protocols.dbc.wanted import Wanted, refusal
from bus.text import nearest

_FLAWS_SHOWN: Final = 10

Told = tuple[str, bool]
"""A finding: what is wrong, and whether it is an error; else it is a warning."""


def flaws_of(database: Database) -> Iterator[str]:
    """Yield the first flaws of a database, and how many more there are."""
    yield from (flaw.text for flaw in database.flaws[:_FLAWS_SHOWN])
    if rest := database.flaws[_FLAWS_SHOWN:]:
        yield f"and {len(rest)} more like these"


def problems(
    database: Database, named: Mapping[str, Sequence[str]], sender: str | None, wanted: Wanted
) -> Iterator[Told]:
    """Yield what is wrong. `named` has the messages that a setting, its key, names."""
    sent = [database.messages[name] for name in wanted.names]
    yield from ((text, False) for text in flaws_of(database))
    if not database.messages:
        yield "it has no messages", True
    for key, names in named.items():
        yield from _unknown(database, key, names)
    if sender is not None:
        yield from _unknown_sender(database, sender)
    yield from _strays("initial", wanted.initial, sent)
    yield from _strays("fill", wanted.fill, sent)
    yield from _uninstalled(wanted)
    for message in sent:
        yield from _unsent(message, database, wanted)


def _unknown(database: Database, key: str, names: Sequence[str]) -> Iterator[Told]:
    for name in names:
        if name not in database.messages:
            yield f'{key}: no message "{name}"{nearest(name, database.messages)}', True


def _unknown_sender(database: Database, sender: str) -> Iterator[Told]:
    senders = {name for message in database.messages.values() for name in message.senders}
    if sender not in senders:
        what = "no node" if sender not in database.nodes else "no message is sent by node"
        yield f'as: {what} "{sender}"{nearest(sender, senders)}', True


def _strays(key: str, given: Mapping[str, object], sent: Sequence[Message]) -> Iterator[Told]:
    """Yield the entries of a setting by signals that are of no message that is sent."""
    used = {name: message for message in sent for name in chosen_for(message, given)}
    for entry in given:
        name = entry.rpartition("/")[2]
        owner = entry.rpartition("/")[0]
        if name not in used or (owner and not any(owner == message.name for message in sent)):
            known = [f"{message.name}/{signal.name}" for message in sent for signal in message.signals]
            hint = nearest(entry, known if owner else [one.rpartition("/")[2] for one in known])
            yield f'{key}: no message that is sent has a signal "{entry}"{hint}', True


def _uninstalled(wanted: Wanted) -> Iterator[Told]:
    for name in dict.fromkeys(wanted.fill.values()):
        try:
            found = FILLS.find(name)
        except ValueError as error:
            yield f"fill: {error}", True
            continue
        if found is None:
            yield f'fill: "{name}" is not installed{nearest(name, FILLS.all())}', True


def _unsent(message: Message, database: Database, wanted: Wanted) -> Iterator[Told]:
    """Yield why a message that should be sent is not, or not as it seems."""
    if text := refusal(message, database.flaws, wanted):
        yield text, True
        return
    filled, initial = chosen_for(message, wanted.fill), chosen_for(message, wanted.initial)
    for signal in message.signals:
        if signal.name not in filled and signal.name not in initial and seems_filled(signal):
            yield (
                f"{message.name}/{signal.name} looks like a counter or a checksum, and nothing fills it: "
                f"without fill, the bus must give its value",
                False,
            )
    if wanted.cycle and not message.cycle_ms:
        yield f"{message.name} has no cycle time: it is sent when a value comes, and not repeated", False
    elif wanted.cycle and message.cycle_ms / 1000 >= wanted.age_s:
        yield (
            f"{message.name} has a cycle of {message.cycle_ms} ms, and its values are too old after age_ms, "
            f"{wanted.age_s * 1000:g} ms: it is never repeated",
            False,
        )
