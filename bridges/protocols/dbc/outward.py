"""The half of the translator that sends: from values under patterns to frames of a CAN bus. Pure."""

import json
from collections.abc import Callable, Collection
from functools import partial
from math import inf
from typing import Any, Final

from bridges.items import EXTENDED, CanFrame
from bridges.protocols.dbc.compiled import compile_message
from bridges.protocols.dbc.fills import COUNTER, FILLS, chosen_for
from bridges.protocols.dbc.inward import Taker
from bridges.protocols.dbc.j1939.claim import Claim
from bridges.protocols.dbc.j1939.pgn import ADDRESS_CLAIMED, REQUEST, destination_of, pgn_of
from bridges.protocols.dbc.layout import Database, Message
from bridges.protocols.dbc.outlet import NO_SIGNAL, SignalOutlet, Terms
from bridges.protocols.dbc.values import Refusal
from bridges.protocols.dbc.wanted import Wanted, initial_raws, refusal
from bridges.protocols.translator import Sent, fit, published
from bus.quantity.forms import Value, read
from bus.wire.pattern import token

NOT_SENT: Final = "not sent here"


def outlet_of(message: Message, wanted: Wanted) -> SignalOutlet:
    """Return the outlet of a message. Raises ValueError for a fill that is not installed."""
    fills = chosen_for(message, wanted.fill)
    identifier = message.identifier
    if message.is_j1939 and wanted.address is not None:
        identifier = identifier & ~0xFF | wanted.address
    terms = Terms(
        identifier,
        initial_raws(message, wanted.initial),
        {name: _fill(fill) for name, fill in fills.items()},
        frozenset(name for name, fill in fills.items() if fill == COUNTER),
        message.cycle_ms / 1000 if wanted.cycle else 0.0,
        wanted.age_s,
        message.is_j1939,
    )
    return SignalOutlet(compile_message(message), terms)


def _fill(name: str) -> Callable[[bytes, int, int, int], int]:
    found: Any = FILLS.find(name)
    if found is None:
        raise ValueError(f'no fill "{name}": a distribution adds one with an entry point of {FILLS.group}')
    made: Callable[[bytes, int, int, int], int] = found
    return made


class Outward:
    """The sending half. `tokens_of(message)` are those under which the values of a message are written.
    `unfit` is that of `bridges.protocols.translator.Wire`.

    Raises ValueError for a fill that is not installed. A message that cannot be sent is left out: `check`
    says why.
    """

    def __init__(
        self,
        database: Database,
        wanted: Wanted,
        may_act: Callable[[float], bool],
        reject: Callable[[str], None],
        tokens_of: Callable[[Message], tuple[int, ...]],
        unfit: Callable[[CanFrame], str] = fit,
    ) -> None:
        self._form, self._may_act, self._reject = wanted.form, may_act, reject
        self._outlets = dict[str, SignalOutlet]()
        self._targets = dict[tuple[int, ...], tuple[SignalOutlet, str]]()
        for message in (database.messages[name] for name in wanted.names):
            if not refusal(message, database.flaws, wanted):
                outlet = self._outlets[message.name] = outlet_of(message, wanted)
                base = tokens_of(message)
                self._targets[base] = outlet, ""
                self._targets |= {(*base, token(one.name)): (outlet, one.name) for one in message.signals}
        messages = [one.message for one in self._outlets.values()]
        items = {one.name: (one.identifier, bytes(one.size), one.marks) for one in messages}
        self._unfit = {name: why for name, item in items.items() if (why := unfit(item))}
        self._claim: Claim | None = None
        if self._outlets and wanted.address is not None and wanted.name is not None:
            self._claim = Claim(wanted.address, wanted.name, may_act)
        self._replies = list[CanFrame]()

    @property
    def due_s(self) -> float:
        """The time at which `turn` has something to do."""
        if not self._outlets or self._replies:
            return 0.0 if self._replies else inf
        claim_s = inf if self._claim is None else self._claim.due_s
        return min((claim_s, *(outlet.due_s for outlet in self._outlets.values())))

    @property
    def is_free(self) -> bool:
        """Whether something can be sent now: not while an address is claimed."""
        return self._claim is None or self._claim.state in ("claimed", "lost")

    @property
    def condition(self) -> str:
        """The trouble with sending, in a few words; "" if there is none."""
        said = self._claim.condition if self._claim is not None else ""
        return said or next((words for one in self._outlets.values() if (words := one.condition)), "")

    def taker_of(self, identifier: int, message: Message | None) -> Taker | None:
        """Return what takes frames that are about sending; None for all others."""
        if self._claim is not None and identifier & EXTENDED:
            if pgn_of(identifier) == ADDRESS_CLAIMED:
                return partial(self._hear_claim, identifier & 0xFF)
            if pgn_of(identifier) == REQUEST:
                return partial(self._hear_request, destination_of(identifier))
        if message is None or message.name not in self._outlets:
            return None
        outlet = self._outlets[message.name]
        is_ours = not message.is_j1939 or self._claim is None or identifier & 0xFF == self._claim.address
        return partial(self._hear, outlet) if is_ours else None

    def _hear(self, outlet: SignalOutlet, data: bytes | bytearray, now_s: float) -> list[bytes]:
        """Take what we alone send: from the gateway that does it now, or else from a stranger."""
        if self._may_act(now_s):
            self._reject("another sender")
        else:
            outlet.hear(data)
        return []

    def _hear_claim(self, source: int, data: bytes | bytearray, now_s: float) -> list[bytes]:
        if self._claim is not None:
            self._replies += self._claim.heard(source, data)
        return []

    def _hear_request(self, destination: int, data: bytes | bytearray, now_s: float) -> list[bytes]:
        if self._claim is not None:
            self._replies += self._claim.requested(int.from_bytes(data[:3], "little"), destination)
        return []

    def send(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        """Return the frame that a value completes, or why it is refused."""
        frame = published(message, ())
        outlet, name = (None, "") if frame is None else self._targets.get(frame.tokens, (None, ""))
        if frame is None or outlet is None:
            return Sent(why=NOT_SENT)
        if self._claim is not None and self._claim.state == "lost":
            return Sent(why="address lost")
        if why := self._unfit.get(outlet.name):
            return Sent(why=why)
        try:
            values = {name: self._value(frame.data, outlet.texts(name))} if name else _values(frame.data)
            outlet.write(values, now_s)
            return Sent(outlet.send(now_s))
        except Refusal as error:
            return Sent(why=str(error))

    def _value(self, data: bytes, texts: Collection[str]) -> Value:
        try:
            return read(self._form, data, texts)
        except ValueError:
            raise Refusal("no value") from None

    def turn(self, now_s: float) -> list[CanFrame]:
        """Return what is due: answers, claims, and messages that are repeated."""
        found, self._replies = self._replies, []
        may_act = self._may_act(now_s)
        if self._claim is not None:
            found += self._claim.turn(now_s)
            may_act = may_act and self._claim.state == "claimed"
        for outlet in self._outlets.values():
            found += outlet.turn(now_s, may_act)
        return found


def _values(data: bytes) -> dict[str, Value]:
    """Return the values of the signals of a message in JSON: an object of them, or one with them as `v`."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal("no value") from None
    inner = found.get("v") if isinstance(found, dict) else None
    values = inner if isinstance(inner, dict) else found
    if not isinstance(values, dict) or not values:
        raise Refusal("no value")
    if not all(isinstance(value, int | float | str) for value in values.values()):
        raise Refusal(NO_SIGNAL if any(isinstance(one, dict) for one in values.values()) else "no value")
    return values
