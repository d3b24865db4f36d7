"""The records of Modbus: a table of registers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from bridges.items import Items
from bridges.protocols.asking import Asking, counted
from bridges.protocols.protocol import Cycle, Problem
from bridges.protocols.values import Valued
from bus.key_types import Delay
from bus.kinds import load
from bus.quantity.raw import TEXT, Order, Type, size_of
from bus.schema import Length, Range, Record, check_fields

Kind = Literal["coil", "discrete", "input", "holding"]
BITS = ("coil", "discrete")
WRITABLE = ("coil", "holding")
REGISTERS_MAX, BITS_MAX = 125, 2000
WRITTEN_MAX = 123
PRINTED: dict[int, tuple[Kind, ...]] = {1: ("discrete",), 3: ("input", "holding"), 4: ("holding", "input")}
"""The kinds that the first of five digits stands for in manuals, or that a user may have meant by it."""
Late = Annotated[float, Range(0, 86_400_000)]


Address = Annotated[int, Range(0, 255)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Valued):
    """One value in one or several registers, or one coil."""

    device: Annotated[Address, "address of the device, or unit behind a TCP address, which may be 0"] = 1
    kind: Annotated[Kind, "which of the four tables of the device"] = "holding"
    register: Annotated[int, Range(0, 65_535), "number in the table, from 0: 40001 is holding 0"]
    length: Annotated[
        Annotated[int, Range(1, REGISTERS_MAX)] | None, "registers of `bits` or `ascii`; others know it"
    ] = None
    scale_register: Annotated[
        Annotated[int, Range(0, 65_535)] | None,
        "register of the same kind with a power of ten, from -10 to 10 as `i16`, by which the value is "
        "multiplied too (the scale factor of SunSpec); one request reads both",
    ] = None

    high_register: Annotated[
        Annotated[int, Range(0, 65_535)] | None,
        "register of the same kind with the higher 16 bits of a `u32` or `i32`, where they stand apart; one "
        "request reads both, and `order` says the bytes in them",
    ] = None

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.value_type in TEXT) != (self.length is not None):
            raise ValueError("length: registers of type bits and ascii, and of no other")
        if self.kind in BITS and self.value_type != "bool":
            raise ValueError(f"a {self.kind} is one bit: leave type out")
        if self.kind in BITS and (self.bit, self.bits) != (None, None):
            raise ValueError(f"a {self.kind} is one bit: leave bit and bits out")
        if self.kind not in BITS and self.size_bytes % 2:
            byte = ": a byte of one is bits: [0, 7] or [8, 15]" if self.size_bytes == 1 else ""
            raise ValueError(f"type {self.type} has {self.size_bytes} bytes, and registers have 2 each{byte}")
        self.check_value(self.size_bytes)
        self.check_asked()
        if self.write and self.kind not in WRITABLE:
            raise ValueError(f"nothing can be written into kind {self.kind}")
        if self.high_register is not None:
            self._check_apart(self.high_register)
        if self.scale_register is not None:
            self._check_scaled(self.scale_register)
        if self.end > 65_536:
            raise ValueError(f"register {self.register} and {self.count - 1} more: the last is 65535")
        if self.write and self.count > WRITTEN_MAX:
            raise ValueError(f"{self.count} registers are written at once: at most {WRITTEN_MAX}")

    def _check_scaled(self, by: int) -> None:
        if self.value_type[0] not in "iu" or self.choices:
            raise ValueError("scale_register is of integers, and of none with choices")
        if self.write:
            raise ValueError("a value with scale_register is not written: the device may change the scale")
        if self.register <= by < self.end or by == self.high_register:
            raise ValueError("scale_register is another register than those of the value")

    def _check_apart(self, high: int) -> None:
        if self.value_type not in ("u32", "i32"):
            raise ValueError("high_register is of type u32 and i32")
        if self.write:
            raise ValueError("a value with high_register is not written: it would be two requests")
        if high == self.register:
            raise ValueError("high_register is another register than that of the lower 16 bits")

    @property
    def value_type(self) -> Type:
        return self.type or ("bool" if self.kind in BITS else "u16")

    @property
    def size_bytes(self) -> int:
        """The bytes of the value: one for a bit."""
        if self.kind in BITS:
            return 1
        return 2 if self.value_type == "bool" else 2 * (self.length or 0) or size_of(self.value_type) or 0

    @property
    def count(self) -> int:
        """The registers or bits of the value, without one that stands apart."""
        return 1 if self.kind in BITS or self.high_register is not None else -(-self.size_bytes // 2)

    @property
    def end(self) -> int:
        return self.register + self.count

    @property
    def span(self) -> tuple[int, int]:
        """The first register that is read for the value, and the one behind the last."""
        read = [self.register, self.end - 1, self.scale_register, self.high_register]
        found = [one for one in read if one is not None]
        return min(found), max(found) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSettings(Record):
    """Settings of one device, where they differ from those of the others."""

    device: Annotated[Address, "its address"]
    timeout_ms: Annotated[Delay | None, "how long it may take to begin its answer"] = None
    late_ms: Annotated[Late | None, "after a timeout, how long its answer may still come"] = None
    order: Annotated[Order | None, "of the bytes of its values"] = None
    gap: Annotated[Annotated[int, Range(0, 124)] | None, "as `gap` of the protocol"] = None
    most: Annotated[Annotated[int, Range(1, REGISTERS_MAX)] | None, "most registers in one request"] = None
    many: Annotated[bool, "write also one register by function 16 (write multiple registers)"] = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Modbus(Asking):
    """Modbus RTU on a serial line, Modbus TCP at an address: this gateway is the one master."""

    MAKE: ClassVar = "bridges.protocols.modbus.translator:ModbusTranslator"
    key: ClassVar = "modbus"
    help: ClassVar = "Modbus RTU or TCP, as the master"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    registers: Annotated[tuple[Register, ...], Length(1, 4096), "the values"]
    devices: Annotated[tuple[DeviceSettings, ...], Length(0, 255), "devices unlike the others"] = ()
    timeout_ms: Annotated[Delay, "how long a device may take to begin its answer"] = 500
    late_ms: Annotated[
        Late,
        "after a timeout, for how long what comes is thrown away before anything is asked again",
    ] = 0
    order: Annotated[Order, "of the bytes of values, A the highest"] = "ABCD"
    gap: Annotated[int, Range(0, 124), "registers nobody asked for that may be read to join two requests"] = 0
    silence_ms: Annotated[
        Delay | None, "silence that ends a frame on a serial line; by default 3.5 characters"
    ] = None

    @property
    def rows(self) -> Sequence[Register]:
        return self.registers

    def check(self) -> None:
        Asking.check(self)
        numbers = [one.device for one in self.devices]
        if len(set(numbers)) < len(numbers):
            raise ValueError("devices: a device is listed twice")
        for row in self.registers:
            row.check_shared_order(self.settings(row.device).order or "ABCD", row.size_bytes)
            most = self.settings(row.device).most or REGISTERS_MAX
            if (count := row.span[1] - row.span[0]) > most:
                raise ValueError(f"{place(row)}: {count} registers, and its device is asked for {most}")

    def unfit(self, is_line: bool) -> str:
        named = {row.device for row in self.registers} | {one.device for one in self.devices}
        if is_line and 0 in named:
            return "device 0 means all devices of a line, of which none answers: name one, from 1 to 255"
        return ""

    def settings(self, device: int) -> DeviceSettings:
        """Return what holds for a device, with every setting given."""
        own = next((one for one in self.devices if one.device == device), DeviceSettings(device=device))
        return DeviceSettings(
            device=device,
            timeout_ms=own.timeout_ms or self.timeout_ms,
            late_ms=self.late_ms if own.late_ms is None else own.late_ms,
            order=own.order or self.order,
            gap=self.gap if own.gap is None else own.gap,
            most=own.most or REGISTERS_MAX,
            many=own.many,
        )

    def label(self) -> str:
        devices = len({row.device for row in self.registers})
        return f"modbus, {counted(len(self.registers), 'value')} of {counted(devices, 'device')}"

    def cycles(self) -> Iterator[Cycle]:
        yield from load("bridges.protocols.modbus.plan:cycles")(self)

    def problems(self) -> Iterator[Problem]:
        yield from Asking.problems(self)
        yield from _overlaps(self.registers)
        yield from _numbered_as_printed(self.registers)


def _numbered_as_printed(rows: Sequence[Register]) -> Iterator[Problem]:
    """Yield a note if all registers have numbers as manuals print them: 40001 is holding 0. SunSpec's own
    numbers begin with 40000."""
    meant = [_printed(row) if row.scale_register is None else None for row in rows]
    if None not in meant:
        one, text = rows[0], f"register {rows[0].register} of the device is asked for"
        yield Problem(
            f"{text}: if that is the number in a manual, it is {meant[0]} here, and so on",
            is_error=False, where=one.where, is_note=True,
        )  # fmt: skip


def _printed(row: Register) -> str | None:
    """Return what a register is to which a manual gives this number; None if no manual does."""
    leading, number = divmod(row.register, 10_000)
    kinds = PRINTED.get(leading, ())
    return f"register {number - 1} of kind {kinds[0]}" if number and row.kind in kinds else None


def _overlaps(rows: Sequence[Register]) -> Iterator[Problem]:
    """Yield a problem for each value that has some, but not all registers of another."""
    for one, other in pairwise(sorted(rows, key=lambda row: (row.device, row.kind, row.register, row.end))):
        same = (one.device, one.kind) == (other.device, other.kind)
        spans = (one.register, one.end), (other.register, other.end)
        if same and other.register < one.end and spans[0] != spans[1]:
            text = f"{place(other)} is also in the value at {place(one)}"
            yield Problem(f"{text}: is a register or a type wrong?", where=other.where)


def place(row: Register) -> str:
    """Return where a value is, for people: device, kind and registers."""
    last = f"-{row.end - 1}" if row.count > 1 else ""
    return f"device {row.device}, {row.kind} {row.register}{last}"
