"""The coding of one value: from bytes of a device to a value, and back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite

from bus.quantity.forms import Form, Value, read, text_in, text_of
from bus.quantity.raw import FLOATS, TEXT, Layout, Raw, pack, part, shortest, unpack
from bus.quantity.scale import PLAIN, Number, Scale, decimal_of


@dataclass(frozen=True, slots=True)
class Coding:
    """The way from bytes to a value and back.

    `no_value`: raw numbers, as unsigned integers of all bytes, by which the device says that it has none;
    with `bits`, of these, unless the value is a `bool`. `choices`: the text of some raw numbers, which stands
    for them both ways. `bits`: the lowest and the highest bit of the value, 0 the lowest of all bytes; None:
    it has them all.
    """

    layout: Layout
    scale: Scale = PLAIN
    no_value: frozenset[int] = frozenset()
    choices: Mapping[int, str] = field(default_factory=dict)
    bits: tuple[int, int] | None = None

    def decode(self, data: bytes, as_number: bool = False) -> Value | None:
        """Return the value in the bytes of a device; None if the device says that it has none.

        `as_number`: also where a text stands for it.

        Raises ValueError for bytes that are no value, such as text that is not ASCII.
        """
        if self.no_value and self._sent(data) in self.no_value:
            return None
        raw = self._raw_in(data)
        if isinstance(raw, str):
            return raw
        if self.choices and raw in self.choices and not as_number:
            return self.choices[int(raw)]
        if isinstance(raw, bool):
            return raw
        if self.layout.type in ("f16", "f32") and raw - raw == 0:
            return self.scale.value(Decimal(shortest(raw, self.layout.type)))
        return self.scale.value(raw)

    def by_ten(self, power: int) -> "Coding":
        """Return the coding of a value that is sent as so many times a power of ten more."""
        return replace(self, scale=self.scale._replace(scale=self.scale.scale.scaleb(power)))

    def _unsigned(self, data: bytes) -> int:
        return int(unpack(data, Layout("u64", self.layout.size_bytes, self.layout.order)))

    def _sent(self, data: bytes) -> int:
        whole = self._unsigned(data)
        if self.bits is None or self.layout.type == "bool":
            return whole
        return int(part(whole, self.bits, "u64"))

    def _raw_in(self, data: bytes) -> Raw:
        if self.bits is None:
            return unpack(data, self.layout)
        return part(self._unsigned(data), self.bits, self.layout.type)

    def read(self, form: Form, data: bytes) -> Value:
        """Return the value that the data of a frame mean here: text where the device has text, or where it
        is that of a choice, whatever it looks like. Raises ValueError, with the reason, for what is none."""
        if form == "text" and self.layout.type in TEXT:
            return text_in(data)
        return read(form, data, self.choices.values())

    def encode(self, value: Value, low: float | None = None, high: float | None = None) -> bytes:
        """Return the bytes for a value that is at least `low` and at most `high`, None for no bound.

        Raises ValueError, with the reason, for a value that the device cannot have exactly: integers and
        steps of the scale are not rounded. Where there are choices and no bounds, a value is one of them.
        """
        if self.bits is not None:
            raise ValueError("some bits of a value cannot be written: others could change meanwhile")
        return pack(self._raw(value, low, high), self.layout)

    def _raw(self, value: Value, low: float | None, high: float | None) -> Raw:
        kind = self.layout.type
        if kind in TEXT:
            return text_of(value)
        if isinstance(value, str):
            return self._chosen(value)
        if kind == "bool":
            return _truth(value)
        if isinstance(value, bool):
            raise ValueError("true and false are no numbers")
        check_range(value, low, high)
        raw = _fitting(self.scale.raw(value), self, value)
        if self.choices and low is None and high is None and raw not in self.choices:
            raise ValueError(f"{str(value)[:32]} is none of the choices, and there is no min and max")
        return raw

    def _chosen(self, text: str) -> int:
        found = next((raw for raw, name in self.choices.items() if name == text), None)
        if found is None and self.layout.type == "bool" and text in ("true", "false"):
            return int(text == "true")
        if found is None:
            raise ValueError(f'"{text[:32]}" is no number')
        return found


def _truth(value: Number) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{str(value)[:32]} is neither 0 nor 1")
    return bool(value)


def check_range(value: Number, low: float | None, high: float | None) -> None:
    """Raise ValueError for a value below `low` or above `high`, None for no bound."""
    if low is not None and not value >= decimal_of(low):
        raise ValueError(f"{str(value)[:32]} is below {low:g}")
    if high is not None and not value <= decimal_of(high):
        raise ValueError(f"{str(value)[:32]} is above {high:g}")


def _fitting(raw: Number, coding: Coding, value: Number) -> int | float:
    if coding.layout.type in FLOATS:
        found = _float(raw, coding.layout.size_bytes)
        if coding.layout.type == "linear11" and found != raw:
            raise ValueError(f"{str(value)[:32]} is no number of linear11, which has 11 bits")
        return found
    if isinstance(raw, int) or raw == 0:
        return int(raw)
    step = "an integer" if coding.scale.is_plain else f"in steps of {coding.scale.scale}"
    raise ValueError(f"{str(value)[:32]} is not {step}")


def _float(raw: Number, size_bytes: int) -> float:
    try:
        if isfinite(found := float(raw)):
            return found
    except OverflowError:
        pass
    raise ValueError(f"{str(raw)[:32]} does not fit {8 * size_bytes} bits")
