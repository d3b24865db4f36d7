"""The wishes of a topology for the messages that it sends, and why one cannot be sent. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from bridges.protocols.dbc.fills import chosen_for
from bridges.protocols.dbc.layout import Flaw, Message
from bridges.protocols.dbc.values import Refusal, raw_of
from bus.quantity.forms import Form

_J1939_BYTES: Final = 8


class Wanted(NamedTuple):
    """The settings of sending; the record `Dbc` has the meaning of each. `names` are those of messages."""

    names: tuple[str, ...]
    initial: Mapping[str, Any]
    fill: Mapping[str, str]
    cycle: bool
    age_s: float
    form: Form
    address: int | None
    name: int | None


def initial_raws(message: Message, given: Mapping[str, Any]) -> dict[str, int]:
    """Return the raw numbers of the initial values of a message. Raises `Refusal` for one that is refused."""
    signals = {signal.name: signal for signal in message.signals}
    found = dict[str, int]()
    for name, value in chosen_for(message, given).items():
        try:
            found[name] = raw_of(signals[name], value)
        except Refusal as error:
            raise Refusal(f"initial {name}: {value} is refused: {error}") from None
    return found


def refusal(message: Message, flaws: Iterable[Flaw], wanted: Wanted) -> str:
    """Return why a message cannot be sent; "" if it can."""
    flaw = next((flaw for flaw in flaws if flaw.blocks and flaw.message == message.name), None)
    if flaw is not None:
        return f"{flaw.text}: it is not sent"
    if message.is_j1939 and message.size > _J1939_BYTES:
        return f"{message.name} has {message.size} bytes, and long messages of J1939 are not sent"
    if message.is_j1939 and (wanted.address is None or wanted.name is None):
        return f"{message.name} is of J1939: give address and name, with which it is sent"
    try:
        initial_raws(message, wanted.initial)
    except Refusal as error:
        return f"{message.name}: {error}"
    return ""
