"""The translator: MAVLink messages to frames, and JSON to MAVLink messages. Pure."""

import json
import math
from collections.abc import Sequence
from typing import Any

from pymavlink.dialects.v20 import common

from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Wire, frame
from bus.wire.frame import DATA_BYTES_MAX, unpack
from bus.wire.pattern import token
from buscoupler_mavlink.protocol import Mavlink

_HALF = 128  # of the sequence numbers
_BY_NAME = {kind.msgname: kind for kind in common.mavlink_map.values()}


class MavlinkTranslator(Translator[bytes]):
    """A translator of one link: a stream of bytes, or datagrams, in which messages never lie across two.

    Rejects by reason: `no message` (bytes that are none), `gap` (sequence numbers that a sender left out),
    `order` (one that comes late or twice; its message comes in all the same).
    """

    def __init__(self, record: Mavlink, wire: Wire) -> None:
        super().__init__(wire)
        self._root, self._record = tokens_of(record.root), record
        self._kinds = {token(name): _BY_NAME[name] for name in record.send if name in _BY_NAME}
        self._parser = common.MAVLink(None, record.system, record.component)
        self._parser.robust_parsing = True  # bytes that are no message are told, not raised
        self._awaited: dict[tuple[int, int], tuple[int, int]] = {}  # and the one behind a late one

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        found = [one for item in items for one in self._parser.parse_buffer(item) or ()]
        return [made for one in found if (made := self._frame(one)) is not None]

    def _frame(self, message: Any) -> bytes | None:
        if message.get_type() == "BAD_DATA":
            self.reject("no message", len(message.data))
            return None
        self._note_gap(message)
        data = json.dumps(_plain(message.to_dict()), separators=(",", ":")).encode()
        if len(data) > DATA_BYTES_MAX:
            self.reject("oversize", len(data))
            return None
        self.found += 1
        return frame((*self._root, message.get_srcSystem(), token(message.get_type())), data)

    def _note_gap(self, message: Any) -> None:
        """Count what is missing before a number. One that is late changes nothing, as the others are not
        missing; if the next one follows it, the sender began anew."""
        sender, number = (message.get_srcSystem(), message.get_srcComponent()), message.get_seq()
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
            fields = [given[name] for name in kind.ordered_fieldnames]
            made = kind(**dict(zip(kind.ordered_fieldnames, fields, strict=True)))
            packed = bytes(made.pack(self._parser))
        except Exception:  # pymavlink raises anything for a value that does not fit
            return Sent(why="malformed")
        self._parser.seq = (self._parser.seq + 1) & 0xFF  # only for what is sent: others count the numbers
        return Sent([packed])


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message as JSON has them: bytes as text, what is no number as null."""
    del fields["mavpackettype"]
    return {name: _value(value) for name, value in fields.items()}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1").rstrip("\0")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
