"""The records of registers on I2C."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bridges.items import Items, Request
from bridges.protocols.asking import Asking, counted
from bridges.protocols.protocol import Cycle
from bridges.protocols.values import Valued
from bus.quantity.raw import TEXT, Order, size_of
from bus.schema import Key, Length, Range, check_fields

BLOCK_BYTES_MAX = 32
"""The bytes that a transfer on SMBus carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRegister(Valued):
    """One value in a chip, from a register on."""

    target: Annotated[int, Range(0x08, 0x77), "7-bit address of the chip"]
    register: Annotated[int, Range(0, 255), "number of the register, which is sent first"]
    size: Annotated[
        Annotated[int, Range(1, BLOCK_BYTES_MAX)] | None,
        Key("bytes"),
        "bytes of the value; given for `bits` and `ascii`, and for a `bool` of more than one",
    ] = None
    access: Annotated[
        Literal["block", "word", "counted"],
        "an I2C block, an SMBus word (two bytes), or an SMBus block, which begins with its length",
    ] = "block"
    pec: Annotated[bool, "a checksum (SMBus PEC) follows, and is verified"] = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.value_type in TEXT and self.size is None:
            raise ValueError(f"type {self.value_type} needs bytes")
        self.check_value(self.size_bytes)
        self.check_asked()
        if self.access == "word" and self.size_bytes != 2:
            raise ValueError(f"a word has two bytes, and this value {self.size_bytes}")
        if self.transfer_bytes > BLOCK_BYTES_MAX:
            raise ValueError(f"{self.transfer_bytes} bytes at once: at most {BLOCK_BYTES_MAX}")

    @property
    def size_bytes(self) -> int:
        """The bytes of the value."""
        return self.size or size_of(self.value_type) or 0

    @property
    def transfer_bytes(self) -> int:
        """The bytes of a transfer, with length and checksum."""
        return self.size_bytes + (self.access == "counted") + self.pec

    @property
    def place(self) -> str:
        """The place of the value, for people."""
        return f"target {self.target:#04x}, register {self.register:#04x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers(Asking):
    """Registers of chips on I2C, such as sensors: this gateway is the one controller that asks them."""

    MAKE: ClassVar = "bridges.protocols.registers.translator:RegistersTranslator"
    key: ClassVar = "registers"
    help: ClassVar = "registers of chips on I2C"
    items: ClassVar[tuple[Items, ...]] = ("registers",)

    registers: Annotated[tuple[ChipRegister, ...], Length(1, 4096), "the values"]
    order: Annotated[Order, "of the bytes of values, A the highest; SMBus words are `BADC`"] = "ABCD"

    @property
    def rows(self) -> Sequence[ChipRegister]:
        return self.registers

    def check(self) -> None:
        Asking.check(self)
        for row in self.registers:
            row.check_shared_order(self.order, row.size_bytes)

    def cycles(self) -> Iterator[Cycle]:
        for row in self.registers:
            asked = Request(0, row.target, row.register, row.transfer_bytes)
            if row.read:
                yield Cycle(row.place, (row.poll_ms or self.poll_ms) / 1000, asked)

    def label(self) -> str:
        chips = len({row.target for row in self.registers})
        return f"registers, {counted(len(self.registers), 'value')} of {counted(chips, 'chip')}"
