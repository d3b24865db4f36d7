"""The words for values of a known quantity, and for the quantity. Pure.

Decimal arithmetic takes 0.4 MiB, and a gateway without quantities never loads it.
"""

from math import isfinite
from typing import Final

from bus.quantity.forms import read, text_in, text_of
from bus.quantity.quantity import Quantity
from bus.text import plain
from bus.wire.notation import written

_CHOICES_SHOWN: Final = 8


def told(quantity: Quantity, data: bytes) -> tuple[str, float | None]:
    """Return the value in the data of a frame as text, and as a number if it is a finite one.

    The text is "" for data that are no value of this form.
    """
    try:
        if quantity.is_text and quantity.form == "text":
            return text_in(data), None
        value = read(quantity.form, data, quantity.choices.values())
    except ValueError:
        return "", None
    if isinstance(value, str):
        return value, None
    try:
        number = float(value)
    except OverflowError:
        return text_of(value), None
    return text_of(value), number if isfinite(number) else None


def line(quantity: Quantity) -> str:
    """Return a line that describes a quantity: pattern, unit, range, texts, and whether it is a command."""
    low, high = (None if bound is None else f"{bound:.12g}" for bound in (quantity.low, quantity.high))
    bounds = {(True, True): f"{low} to {high}", (True, False): f"from {low}", (False, True): f"to {high}"}
    texts = [f"{text_of(number)} {name}" for number, name in sorted(quantity.choices.items())]
    more = ", ..." if texts[_CHOICES_SHOWN:] else ""
    parts = (
        quantity.unit,
        bounds.get((low is not None, high is not None), ""),
        f"({', '.join(texts[:_CHOICES_SHOWN])}{more})" if texts else "",
        "command" if quantity.writable else "",
    )
    return plain("  ".join((_pattern(quantity), *filter(None, parts))))


def _pattern(quantity: Quantity) -> str:
    """Return the pattern of a quantity, with its word in capitals where any token may stand."""
    place = quantity.any_at
    words = (quantity.any_word if at == place else written(name) for at, name in enumerate(quantity.pattern))
    return "/".join(words) or "/"
