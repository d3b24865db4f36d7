"""Values of signals: from raw numbers, and back. Equal to what cantools makes of them. Pure."""

from decimal import Decimal
from math import isfinite
from struct import Struct
from struct import error as StructError
from typing import Final

from bridges.protocols.dbc.layout import Signal
from bus.quantity.forms import text_of

_FLOATS: Final = {16: Struct(">e"), 32: Struct(">f"), 64: Struct(">d")}

Number = int | float
Value = Number | str


class Refusal(ValueError):
    """The reason why a value cannot be sent, which `args[0]` has in the words of drops."""


def text(value: Value) -> str:
    """Return a value as `bus.quantity.forms.text_of` does, in less time."""
    if type(value) is int:
        return str(value)
    if isinstance(value, str):
        return value
    shown = repr(value)
    if shown[-2:] == ".0":
        return shown[:-2] if len(shown) < 18 else text_of(value)
    return text_of(value) if "e" in shown or "n" in shown else shown


def float_of(raw: int, bits: int) -> float:
    """Return the float that has these bits."""
    return float(_FLOATS[bits].unpack(raw.to_bytes(bits // 8, "big"))[0])


def number(signal: Signal, raw: int) -> Number:
    """Return the number that a raw number stands for."""
    found = float_of(raw, signal.bits) if signal.is_float else raw
    return found if signal.is_plain else found * signal.scale + signal.offset


def chosen(signal: Signal, raw: int) -> str | None:
    """Return the text that stands for a raw number, or None."""
    if not signal.is_float or not signal.choices:
        return signal.choices.get(raw)
    found = float_of(raw, signal.bits)
    return signal.choices.get(int(found)) if isfinite(found) else None


def named(signal: Signal) -> dict[int | float | Decimal, str]:
    """Return the texts that stand for numbers of a signal, by these numbers."""
    return {raw * signal.scale + signal.offset: text for raw, text in signal.choices.items()}


def value(signal: Signal, raw: int) -> Value:
    """Return the text that stands for a raw number, or the number."""
    found = chosen(signal, raw)
    return number(signal, raw) if found is None else found


def raw_of(signal: Signal, value: int | float | Decimal | str) -> int:
    """Return the raw number for a value. Raises `Refusal`: `no value`, or `out of range`."""
    if isinstance(value, str):
        return _raw_of_text(signal, value)
    try:
        number = value if isinstance(value, int) else float(value)
        if not isfinite(number):
            raise Refusal("out of range")
        raw = _scaled(signal, number)
        _check(signal, number, raw)
        return _packed(signal, raw)
    except (OverflowError, StructError):
        raise Refusal("out of range") from None


def _raw_of_text(signal: Signal, value: str) -> int:
    found = next((raw for raw, name in signal.choices.items() if name == value), None)
    if found is None:
        raise Refusal("no value")
    return _packed(signal, found)


def _scaled(signal: Signal, number: Number) -> Number:
    scale, offset = signal.scale, signal.offset
    if signal.is_plain:
        return number if signal.is_float else round(number)
    if isinstance(scale, int) and isinstance(offset, int) and not signal.is_float:
        quotient, rest = divmod(number - offset, scale)
        return round(quotient) if rest == 0 else round((number - offset) / scale)
    raw = (number - offset) / scale
    return raw if signal.is_float else round(raw)


def _check(signal: Signal, number: Number, raw: Number) -> None:
    if signal.choices and raw in signal.choices:
        return
    slack = abs(signal.scale) * 1e-6
    if signal.low is not None and number < signal.low - slack:
        raise Refusal("out of range")
    if signal.high is not None and number > signal.high + slack:
        raise Refusal("out of range")


def _packed(signal: Signal, raw: Number) -> int:
    if signal.is_float:
        return int.from_bytes(_FLOATS[signal.bits].pack(raw), "big")
    low = -(1 << signal.bits - 1) if signal.is_signed else 0
    if not low <= raw <= low + (1 << signal.bits) - 1:
        raise Refusal("out of range")
    return int(raw)
