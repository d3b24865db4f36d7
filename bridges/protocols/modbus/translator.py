"""The translator of Modbus. Pure."""

from dataclasses import dataclass

from bridges.protocols.asker import Asker, Device, Outcome, Poll
from bridges.protocols.commands import Command, Place
from bridges.protocols.modbus.mbap import Mbap
from bridges.protocols.modbus.pdu import Ask, writing
from bridges.protocols.modbus.plan import Block, apart, planned
from bridges.protocols.modbus.protocol import DeviceSettings, Modbus, Register
from bridges.protocols.modbus.rtu import Rtu
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Wire

_LATE = frozenset({"short answer", "long answer", "other answer"})
_ILLEGAL = frozenset({2, 3, 4})  # codes that may be of one of the values only


@dataclass(slots=True, eq=False)
class Unit(Device):
    """A device of the table. `late_s`: how long its answer may come after a timeout.

    `requests`: how many requests read its values. `in_step`: its answers are to the last request, surely.
    """

    late_s: float = 0.0
    many: bool = False
    requests: int = 0
    in_step: bool = True


@dataclass(slots=True, eq=False)
class Request(Poll):
    """A poll of one block of registers."""

    block: Block = None  # type: ignore[assignment]
    unit: Unit = None  # type: ignore[assignment]


class ModbusTranslator(Asker[bytes, Request]):
    """A master of Modbus: RTU where bytes take time on the line, TCP elsewhere.

    On RTU an answer says of neither which register nor which request it is. So after a timeout, or anything
    that nobody asked for, a device of several requests is asked something whose answer has another length,
    before its answers are values again.
    """

    def __init__(self, record: Modbus, wire: Wire) -> None:
        units = {row.device: _unit(record.settings(row.device)) for row in record.registers}
        places = [_place(row, record.settings(row.device)) for row in record.registers]
        line = self._line_of(record, wire)
        super().__init__(record, wire, line, places, max(unit.timeout_s for unit in units.values()))
        self._wired, self._units = line, units
        self._places = {id(place.row): place for place in places}
        for block in planned(record):
            self._add(block, 0.0)
        self._probing = False

    def _line_of(self, record: Modbus, wire: Wire) -> Rtu | Mbap:
        if not wire.byte_s:
            return Mbap(self.reject, self._lose)
        silence_s = None if record.silence_ms is None else record.silence_ms / 1000
        return Rtu(self.reject, self._disturb, wire.byte_s, silence_s, wire.echo)

    def _lose(self, why: str) -> None:
        self.broken = why

    def _disturb(self) -> None:
        for unit in self._units.values():
            unit.in_step = unit.requests < 2  # with one request, a late answer is of the same registers

    def _add(self, block: Block, due_s: float) -> None:
        unit = self._units[block.device]
        unit.requests += 1
        self._schedule(Request(unit, block.name, block.poll_s, block=block, unit=unit), due_s)

    def _read(self, poll: Request, now_s: float) -> bytes:
        self._probing = not poll.unit.in_step
        ask = poll.block.probe() if self._probing else poll.block.ask
        return self._send(ask, poll.unit, now_s)

    def _write(self, command: Command, now_s: float) -> bytes:
        self._probing = False
        row, unit = command.place.row, self._device(command)
        assert isinstance(row, Register)
        return self._send(writing(row.device, row.kind, row.register, command.data, unit.many), unit, now_s)

    def _send(self, ask: Ask, unit: Unit, now_s: float) -> bytes:
        return self._wired.ask(ask, now_s, unit.timeout_s, unit.late_s)

    def _device(self, asked: Request | Command) -> Unit:
        if isinstance(asked, Request):
            return asked.unit
        assert isinstance(asked.place.row, Register)
        return self._units[asked.place.row.device]

    def _note(self, device: Device, outcome: Outcome, now_s: float) -> None:
        super()._note(device, outcome, now_s)
        if outcome.code and not self._probing:
            self.wire.stats.reject(f"exception {outcome.code}")
        if self._probing and not outcome.fault:
            assert isinstance(device, Unit)
            device.in_step = True

    def _words(self, fault: str) -> str:
        if self._probing and fault in _LATE:
            return "answers late, or one request behind"
        return super()._words(fault)

    def _refuse(self, poll: Request, outcome: Outcome, now_s: float) -> None:
        if self._probing:
            self._schedule(poll, now_s)
        elif outcome.code in _ILLEGAL and len(parts := apart(poll.block)) > 1:
            poll.unit.requests -= 1
            for block in parts:
                self._add(block, now_s)
        else:
            super()._refuse(poll, outcome, now_s)

    def _values(self, poll: Request, data: bytes) -> list[tuple[Place, bytes]] | None:
        if self._probing:
            return None
        block = poll.block
        return [(self._places[id(row)], block.bytes_of(row, data)) for row in block.rows]


def _unit(settings: DeviceSettings) -> Unit:
    return Unit(
        f"device {settings.device}",
        (settings.timeout_ms or 0) / 1000,
        late_s=(settings.late_ms or 0) / 1000,
        many=settings.many,
    )


def _place(row: Register, settings: DeviceSettings) -> Place:
    return Place(row, tokens_of(row.pattern), row.coding(row.size_bytes, settings.order or "ABCD"))
