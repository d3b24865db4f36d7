"""The translator of registers on I2C. Pure."""

from dataclasses import dataclass
from typing import Any

from bridges.items import Request
from bridges.protocols.asker import Asker, Device, Poll
from bridges.protocols.commands import Command, ValuePlace
from bridges.protocols.protocol import tokens_of
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bridges.protocols.registers.wire import ANSWER_S, Bus
from bridges.protocols.translator import Wire

TIMEOUT_S = 0.5
"""The first pause after a chip did not answer."""


@dataclass(slots=True, eq=False, kw_only=True)
class Reading(Poll):
    """A poll of one value."""

    place: ValuePlace
    row: ChipRegister


class RegistersTranslator(Asker[Any, Reading]):
    """A controller that reads registers, each value by a request of its own. Its items are requests and
    answers of `bridges/items.py`."""

    def __init__(self, record: Registers, wire: Wire) -> None:
        places = [_place(row, record) for row in record.registers]
        self._bus = Bus(self.reject)
        super().__init__(record, wire, self._bus, places, ANSWER_S)
        targets = {row.target: Device(f"target {row.target:#04x}", TIMEOUT_S) for row in record.registers}
        self._targets = targets
        for place, row in zip(places, record.registers, strict=True):
            if row.read:
                poll_s = (row.poll_ms or record.poll_ms) / 1000
                poll = Reading(
                    device=targets[row.target], name=row.place, poll_s=poll_s, place=place, row=row
                )
                self._schedule(poll, 0.0)

    def _read(self, poll: Reading, now_s: float) -> Request:
        return self._bus.read(poll.row, now_s)

    def _write(self, command: Command, now_s: float) -> Request:
        return self._bus.write(_row(command), command.data, now_s)

    def _values(self, poll: Reading, data: bytes) -> list[tuple[ValuePlace, bytes]]:
        return [(poll.place, data)]

    def _device(self, asked: Reading | Command) -> Device:
        return asked.device if isinstance(asked, Reading) else self._targets[_row(asked).target]


def _row(command: Command) -> ChipRegister:
    row = command.place.row
    assert isinstance(row, ChipRegister)
    return row


def _place(row: ChipRegister, record: Registers) -> ValuePlace:
    return ValuePlace(row, tokens_of(row.pattern), row.coding(row.size_bytes, record.order))
