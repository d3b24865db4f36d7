"""The translator of Modbus. Pure."""

from dataclasses import dataclass, replace
from math import inf

from bridges.protocols.asker import Asker, Device, Poll
from bridges.protocols.commands import Command, ValuePlace
from bridges.protocols.line import Outcome
from bridges.protocols.modbus.mbap import Mbap
from bridges.protocols.modbus.pdu import Ask, writing
from bridges.protocols.modbus.plan import Block, apart, planned
from bridges.protocols.modbus.protocol import DeviceSettings, Modbus, Register
from bridges.protocols.modbus.rtu import Rtu
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Wire
from bus.quantity.coding import Coding
from bus.quantity.raw import Layout, Order, swaps_bytes, unpack

_LATE = frozenset({"short answer", "long answer", "other answer"})
_ILLEGAL = frozenset({2, 3, 4})  # codes that may be of one of the values only
DOUBT_S, DOUBT_TIMES = 5.0, 10
"""The time after a disturbance for which answers of an RTU device are confirmed: in s, or in timeouts."""
CONFIRM_S = 60.0
"""The time after which an answer is confirmed anyway."""
_RTU = '; nothing came: if that is RTU behind a serial server, it is uart: {port: "socket://HOST:PORT"}'
NO_POWER, POWER_MAX = -0x8000, 10
"""The scale factor that stands for none, and the largest (SunSpec Device Information Model, sunssf)."""


@dataclass(slots=True, eq=False)
class Unit(Device):
    """A device of the table. `late_s`: how long its answer may come after a timeout.

    `requests`: how many different ones read its values. Before `doubt_s` an answer may be that to an earlier
    request, and so may one long after `confirmed_s`, when an answer surely was not. `behind`: that was seen.
    """

    late_s: float = 0.0
    many: bool = False
    requests: int = 0
    doubt_s: float = -inf
    confirmed_s: float = inf
    behind: bool = False

    def answered(self) -> None:
        Device.answered(self)  # `slots` makes the class anew, and `super()` would refer to the old one
        self.behind = False

    def in_doubt(self, now_s: float) -> bool:
        """Tell whether an answer needs to be confirmed. Of one request, a late one has the same values."""
        return self.requests > 1 and (now_s < self.doubt_s or now_s >= self.confirmed_s + CONFIRM_S)


@dataclass(slots=True, eq=False, kw_only=True)
class Request(Poll):
    """A poll of one block of registers of one device."""

    block: Block
    unit: Unit


class ModbusTranslator(Asker[bytes, Request]):
    """A master of Modbus: RTU where bytes take time on the line, TCP elsewhere.

    On RTU an answer says of neither which register nor which request it is. So for a while after a timeout,
    or after anything that nobody asked for, an answer is held until the device has answered another request
    rightly, whose answer has another length. Before the first command a request that reads tells whether the
    line echoes.
    """

    def __init__(self, record: Modbus, wire: Wire) -> None:
        settings = {row.device: record.settings(row.device) for row in record.registers}
        self._units = {address: _unit(one) for address, one in settings.items()}
        places = [_place(row, settings[row.device]) for row in record.registers]
        self._wired = self._line_of(record, wire)
        answer_s = max(unit.timeout_s for unit in self._units.values())
        super().__init__(record, wire, self._wired, places, answer_s)
        self._places = {id(place.row): place for place in places}
        self._by_ten = dict[tuple[int, int], ValuePlace]()
        self._held = list[bytes]()
        self._confirming = False
        for block in planned(record):
            self._add(block, 0.0)

    def _line_of(self, record: Modbus, wire: Wire) -> Rtu | Mbap:
        if not wire.byte_s:
            return Mbap(self.reject, self._lose)
        for unit in self._units.values():
            unit.confirmed_s = -inf
        silence_s = None if record.silence_ms is None else record.silence_ms / 1000
        return Rtu(self.reject, self._disturb, wire.byte_s, silence_s)

    def _lose(self, why: str) -> None:
        self.over = why

    def _start(self) -> None:
        super()._start()
        self.wire.stats.reject("late answer", len(self._held))
        self._held = []

    def _disturb(self, now_s: float) -> None:
        self._start()
        for unit in self._units.values():
            unit.confirmed_s = -inf
            unit.doubt_s = now_s + max(DOUBT_S, DOUBT_TIMES * unit.timeout_s, unit.late_s)

    def _add(self, block: Block, due_s: float) -> None:
        unit = self._units[block.device]
        unit.requests += 1
        poll = Request(device=unit, name=block.name, poll_s=block.poll_s, block=block, unit=unit)
        self._schedule(poll, due_s)

    def _begin(self, now_s: float) -> list[bytes]:
        if not self._commands or self._again is not None or self._wired.knows_echo:
            return super()._begin(now_s)
        if self._is_due(now_s):
            self._read_next = True
            return super()._begin(now_s)
        return [self._listen(now_s)]

    def _listen(self, now_s: float) -> bytes:
        """Begin to read what a command is about to write, and forget the values: the answer to a write of one
        value looks like its echo, so it first must be known whether the line echoes."""
        command = self._commands.first
        row, unit = command.place.row, self._device(command)
        assert isinstance(row, Register)
        block = Block(row.device, row.kind, row.register, row.count, 0.0, (row,))
        self._asked = Request(device=unit, name=block.name, poll_s=0.0, block=block, unit=unit)
        self._confirming = True
        return self._send(block.ask, unit, now_s)

    def _read(self, poll: Request, now_s: float) -> bytes:
        self._confirming = bool(self._held)
        return self._send(poll.block.probe() if self._held else poll.block.ask, poll.unit, now_s)

    def _write(self, command: Command, now_s: float) -> bytes:
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

    def _ended(self, outcome: Outcome, now_s: float) -> list[bytes]:
        if not self._confirming:
            return super()._ended(outcome, now_s)
        asked, self._asked, self._confirming = self._asked, None, False
        assert asked is not None  # the line had a request
        unit, held = self._device(asked), self._held
        self._held = []
        unit.behind = unit.behind or outcome.fault in _LATE
        if held and not outcome.fault:
            unit.confirmed_s = now_s
        super()._note(unit, outcome, now_s)
        return held  # none if it was no answer to the request

    def _note(self, device: Device, outcome: Outcome, now_s: float) -> None:
        if outcome.code:
            self.wire.stats.reject(f"exception {outcome.code}")
        assert isinstance(device, Unit)
        if outcome.fault or not device.in_doubt(now_s):
            super()._note(device, outcome, now_s)

    def _words(self, device: Device, outcome: Outcome) -> str:
        assert isinstance(device, Unit)
        if device.behind:
            return "answers late, or one request behind"
        is_dumb = isinstance(self._wired, Mbap) and self._wired.heard_s == -inf
        is_told = next(iter(self._troubled), device) is not device
        return super()._words(device, outcome) + (_RTU if is_dumb and not is_told else "")

    def _refuse(self, poll: Request, outcome: Outcome, now_s: float) -> None:
        if outcome.code not in _ILLEGAL or len(parts := apart(poll.block)) < 2:
            return super()._refuse(poll, outcome, now_s)
        self._trouble(poll, "")  # it is asked no more
        poll.unit.requests -= 1
        for block in parts:
            self._add(block, now_s)
        return None

    def _heard(self, poll: Request, data: bytes, now_s: float) -> list[bytes]:
        messages = super()._heard(poll, data, now_s)
        if not messages or not poll.unit.in_doubt(now_s):
            return messages
        self._held, self._again = messages, poll
        return []

    def _values(self, poll: Request, data: bytes) -> list[tuple[ValuePlace, bytes]]:
        found = list[tuple[ValuePlace, bytes]]()
        for row in poll.block.rows:
            place = self._scaled(self._places[id(row)], poll.block.power_bytes_of(row, data))
            if place is not None:
                found.append((place, poll.block.bytes_of(row, data)))
        return found

    def _scaled(self, place: ValuePlace, power: bytes) -> ValuePlace | None:
        """Return a place whose value has the `power` of ten that the device says, if its table has one. Where
        the device says that it has none, this is counted, and None is returned."""
        if not power:
            return place
        assert isinstance(place.coding, Coding)
        order: Order = "BA" if swaps_bytes(place.coding.layout.order) else "AB"
        number = int(unpack(power, Layout("i16", 2, order)))
        if abs(number) > POWER_MAX:
            self.wire.stats.reject("not available" if number == NO_POWER else "not a value")
            return None
        made = self._by_ten.get((id(place.row), number))
        if made is None:
            made = place._replace(coding=place.coding.by_ten(number))
            self._by_ten[id(place.row), number] = made
        return made


def _unit(settings: DeviceSettings) -> Unit:
    return Unit(
        f"device {settings.device}",
        (settings.timeout_ms or 0) / 1000,
        late_s=(settings.late_ms or 0) / 1000,
        many=settings.many,
    )


def _place(row: Register, settings: DeviceSettings) -> ValuePlace:
    coding = row.coding(row.size_bytes, settings.order or "ABCD")
    if row.high_register is not None:  # the higher word is put first
        order: Order = "BADC" if swaps_bytes(coding.layout.order) else "ABCD"
        coding = replace(coding, layout=coding.layout._replace(order=order))
    return ValuePlace(row, tokens_of(row.pattern), coding)
