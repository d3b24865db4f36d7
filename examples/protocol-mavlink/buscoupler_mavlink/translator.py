"""The translator: MAVLink messages to frames, and JSON to MAVLink messages. Pure."""

import json
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Wire, frame
from bus.quantity.raw import shortest
from bus.wire.frame import DATA_BYTES_MAX, unpack
from bus.wire.pattern import token
from buscoupler_mavlink.protocol import Mavlink

_VERSION_2 = 0xFD  # with which a message begins
_HALF = 128  # of the sequence numbers
_CODEC = "latin-1"
_TOLD_S = 60.0  # longer than the time between two messages of a kind: noise may look like one once


class MavlinkTranslator(Translator[bytes]):
    """A translator of one link: a stream of bytes, or datagrams, in which messages never lie across two.

    Rejects by reason: `no message` (bytes that are none), `gap` (sequence numbers that a sender left out),
    `order` (one that comes late or twice; its message comes in all the same), `unknown` (a message that the
    dialect does not have: nobody can tell whether it is whole).
    """

    def __init__(self, record: Mavlink, wire: Wire) -> None:
        super().__init__(wire)
        self._root, self._record = tokens_of(record.root), record
        dialect, by_name = _module(record.dialect), kinds_of(record.dialect)
        self._kinds = {token(name): by_name[name] for name in record.send if name in by_name}
        self._unknown = dialect.MAVLink_unknown
        self._parser = dialect.MAVLink(None, record.system, record.component)
        self._parser.robust_parsing = True  # bytes that are no message are told, not raised
        self._strange_until_s = 0.0
        self._awaited: dict[tuple[int, int], tuple[int, int]] = {}  # and the one behind a late one

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        found = [one for item in items for one in self._parser.parse_buffer(item) or ()]
        return [made for one in found if (made := self._frame(one, now_s)) is not None]

    def _frame(self, message: Any, now_s: float) -> bytes | None:
        if message.get_type() == "BAD_DATA":
            self.reject("no message", len(message.data))
            return None
        if isinstance(message, self._unknown):
            return self._leave_out(message, now_s)
        if self.condition and now_s >= self._strange_until_s:
            self.condition = ""
        self._note_gap(message)
        data = json.dumps(_plain(message), separators=(",", ":")).encode()
        if len(data) > DATA_BYTES_MAX:
            self.reject("oversize", len(data))
            return None
        self.found += 1
        return frame((*self._root, message.get_srcSystem(), token(message.get_type())), data)

    def _leave_out(self, message: Any, now_s: float) -> None:
        """Count a message without a definition, and its number, so that it is not taken for a gap."""
        self.reject("unknown", len(message.data))
        self._strange_until_s = now_s + _TOLD_S
        if not self.condition:  # the first one is enough: each change is told in the log
            self.condition = f"{message.get_type()} is not in dialect {self._record.dialect}"
        at = 4 if message.data[0] == _VERSION_2 else 2
        number, system, component = message.data[at : at + 3]
        if (system, component) in self._awaited:
            self._note((system, component), number)

    def _note_gap(self, message: Any) -> None:
        self._note((message.get_srcSystem(), message.get_srcComponent()), message.get_seq())

    def _note(self, sender: tuple[int, int], number: int) -> None:
        """Count what is missing before a number. One that is late changes nothing, as the others are not
        missing; if the next one follows it, the sender began anew."""
        awaited, anew = self._awaited.get(sender, (number, -1))
        missing, following = (number - awaited) & 0xFF, (number + 1) & 0xFF
        if missing < _HALF:
            self.wire.stats.reject("gap", missing)
            self._awaited[sender] = following, -1
        else:
            self.reject("order")
            self._awaited[sender] = following if number == anew else awaited, following

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        told = unpack(message)
        kind = self._kinds.get(told.tokens[-1]) if told.tokens else None
        if kind is None or told.tokens[:-1] != (*self._root, self._record.system):
            return Sent(why="not sent here")
        try:
            given = json.loads(told.data)
            types = dict(zip(kind.fieldnames, kind.fieldtypes, strict=True))
            made = kind(**{name: _raw(given[name], type_) for name, type_ in types.items()})
            packed = bytes(made.pack(self._parser))
        except Exception:  # pymavlink raises anything for a value that does not fit
            return Sent(why="malformed")
        self._parser.seq = (self._parser.seq + 1) & 0xFF  # only for what is sent: others count the numbers
        return Sent([packed])


def kinds_of(dialect: str) -> dict[str, Any]:
    """Return the classes of the messages of a dialect, by their names."""
    return {kind.msgname: kind for kind in _module(dialect).mavlink_map.values()}


def _module(dialect: str) -> Any:
    return import_module(f"pymavlink.dialects.v20.{dialect}")


def _plain(message: Any) -> dict[str, Any]:
    """Return the fields of a message as JSON has them: bytes as text, what is no number as null."""
    fields = message.to_dict()
    types = zip(message.fieldnames, message.fieldtypes, strict=True)
    return {name: _value(fields[name], type_ == "float") for name, type_ in types}


def _value(value: Any, is_single: bool) -> Any:
    if isinstance(value, list):
        return [_value(one, is_single) for one in value]
    if isinstance(value, bytes | bytearray):
        return value.decode(_CODEC).rstrip("\0")
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return float(shortest(value, "f32")) if is_single else value


def _raw(value: Any, type_: str) -> Any:
    """Return the value of a field as pymavlink has it: the opposite of `_value`."""
    if isinstance(value, list):
        return [_raw(one, type_) for one in value]
    if isinstance(value, str):
        return value.encode(_CODEC)
    return math.nan if value is None and type_ in ("float", "double") else value
