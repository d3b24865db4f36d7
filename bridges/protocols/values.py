"""The settings of values that protocols share: types, scale, unit and form, as they stand in a topology.

`bus/quantity/` does the work, so that the syndication broker has the same words. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from bridges.protocols.rows import Asked
from bus.quantity.coding import Coding
from bus.quantity.forms import Form
from bus.quantity.quantity import Quantity
from bus.quantity.raw import FLOATS, TEXT, Layout, Order, Type, check_shared_order, size_of
from bus.quantity.scale import Scale
from bus.quantity.settings import OrderSetting, check_scaled, is_number
from bus.schema import Check, Length, Means, Range, Single

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,19})|0x[0-9a-fA-F]{1,16}")  # as everywhere in a file
Bit = Annotated[int, Range(0, 63)]


def _check_number(text: str) -> None:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f'"{text[:32]}" is no integer, as the device sends it: write it like 10 or 0x0a')


def _number(text: str) -> int:
    return int(text, 0)


def _bounds(type_: Type, width: int) -> tuple[int, int]:
    """Return the least and the greatest number that has a text: of bits and bytes, 0 and 1."""
    if type_.startswith("bcd"):
        return 0, 10 ** (width // 4) * (1 << width % 4) - 1
    return (-(1 << width - 1), (1 << width - 1) - 1) if type_[0] == "i" else (0, (1 << width) - 1)


Choices = Annotated[
    Mapping[
        Annotated[str, Check(_check_number, "an integer"), Means(_number)], Annotated[str, Length(1, 64)]
    ],
    Length(0, 4096),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued(Asked):
    """The base of records of one value in the bytes of a device.

    Raises ValueError if its settings do not fit together. A protocol calls `check_value(size_bytes)`, as it
    knows how many bytes the value has.
    """

    type: Annotated[
        Type | None,
        "`u`, `i`, `f`: unsigned, signed, floating, and the bits; `bcd`: a digit in every four bits; "
        "`linear11`: of PMBus; `bits` and `ascii` have a length. By default `u16`; of a single bit `bool`",
    ] = None
    order: OrderSetting = None
    no_value: Annotated[
        tuple[Annotated[int, Range(0, (1 << 64) - 1)], ...],
        Length(0, 16),
        Single(),
        "numbers, as sent, by which the device says that it has no value; with `bits` what these are, of a "
        "`bool` its register",
    ] = ()
    choices: Annotated[Choices, "text that stands for some numbers, as sent"] = field(default_factory=dict)
    bit: Annotated[Bit | None, "of a `bool`: which bit it is, 0 the lowest"] = None
    bits: Annotated[
        Annotated[tuple[Bit, ...], Length(2, 2)] | None,
        "the lowest and the highest bit of a value that does not fill its register: `[8, 15]` of a `u16` is "
        "its high byte, `[0, 12]` of an `i16` has its sign in bit 12. Only read",
    ] = None

    @property
    def texts(self) -> Mapping[int, str]:
        """The choices by number: keys in a file are text. Of a signed type, 0xFFFF as sent is -1."""
        bits = self._width
        negative = 1 << bits - 1 if self.value_type[0] == "i" else 1 << bits
        found = ((int(number, 0), text) for number, text in self.choices.items())
        return {n - (1 << bits) if negative <= n < 1 << bits else n: text for n, text in found}

    @property
    def _field(self) -> tuple[int, int] | None:
        """The lowest and the highest bit of the value, None for all of its bytes."""
        if self.bit is not None:
            return self.bit, self.bit
        return None if self.bits is None else (self.bits[0], self.bits[1])

    @property
    def _width(self) -> int:
        """The bits of its number."""
        if self.value_type == "bool":
            return 1
        return self.bits[1] - self.bits[0] + 1 if self.bits else 8 * (size_of(self.value_type) or 0)

    @property
    def value_type(self) -> Type:
        """The type, also where the record has none."""
        return self.type or "u16"

    @property
    def is_text(self) -> bool:
        return self.value_type in TEXT

    @property
    def is_number(self) -> bool:
        return is_number(self.value_type) and not self.choices

    def check_asked(self) -> None:
        Asked.check_asked(self)
        if self.write and (self.bit, self.bits) != (None, None):
            some = "some bits" if self.bit is None else "one bit"
            raise ValueError(f"{some} of a register cannot be written: others could change meanwhile")

    def check_shared_order(self, order: Order, size_bytes: int) -> None:
        """Raise ValueError if the value has no order of its own, and that of its protocol is none for it."""
        if self.order is None:
            try:
                check_shared_order(Layout(self.value_type, size_bytes, order))
            except ValueError as error:
                raise ValueError(f"{'/'.join(map(str, self.pattern))}: {error}") from None

    def check_value(self, size_bytes: int) -> None:
        """Raise ValueError if the settings of the value do not fit together, or not its bytes."""
        layout = Layout(self.value_type, size_bytes, self.order or "ABCD")
        check_scaled(layout, self.scale, self.offset)
        wanted = size_of(self.value_type)
        if wanted is not None and wanted != size_bytes and self.value_type != "bool":
            raise ValueError(f"type {self.value_type} has {wanted} bytes, not {size_bytes}")
        if self.value_type in TEXT | FLOATS and self.choices:
            raise ValueError(f"type {self.value_type} has no choices")
        if self.bit is not None and (self.value_type != "bool" or self.bit >= 8 * size_bytes):
            raise ValueError(f"bit is for type bool, and 0 to {8 * size_bytes - 1}")
        if self.bits is not None:
            self._check_bits(self.bits, 8 * size_bytes)
        self._check_choices()

    def _check_bits(self, bits: tuple[int, ...], width: int) -> None:
        if self.value_type in TEXT | FLOATS:
            raise ValueError(f"type {self.value_type} has no bits: they are of integers and bool")
        if self.bit is not None:
            raise ValueError("bit and bits: one of them")
        if not bits[0] <= bits[1] < width:
            raise ValueError(f"bits: the lowest, then the highest, from 0 to {width - 1}")
        if self.value_type != "bool" and any(number >> self._width for number in self.no_value):
            raise ValueError(
                f"no_value: of the {self._width} bits alone, so at most {(1 << self._width) - 1}"
            )

    def _check_choices(self) -> None:
        low, high = _bounds(self.value_type, self._width)
        if (wrong := next((number for number in self.texts if not low <= number <= high), None)) is not None:
            some = f"{self._width} bits of " if self.bits else ""
            raise ValueError(f"choices: {wrong} does not fit {some}type {self.value_type}")
        if len(self.texts) < len(self.choices):
            raise ValueError("two choices are the same number")
        if len(set(self.choices.values())) < len(self.choices):
            raise ValueError("two choices have the same text")

    def coding(self, size_bytes: int, order: Order = "ABCD") -> Coding:
        """Return how the bytes of the value are read and written; `order` holds where the record has none."""
        layout = Layout(self.value_type, size_bytes, self.order or order)
        scale = Scale.of(self.scale, self.offset)
        return Coding(layout, scale, frozenset(self.no_value), self.texts, self._field)

    def quantity(self, form: Form) -> Quantity:
        scale = Scale.of(self.scale, self.offset)
        choices = {scale.value(raw): text for raw, text in self.texts.items()}
        return replace(Asked.quantity(self, form), choices=choices)
