"""The quantities that a process knows, by pattern. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from math import isfinite
from typing import Final

from bus.quantity.forms import read, text_in, text_of
from bus.quantity.quantity import Quantity
from bus.text import plain
from bus.wire.notation import text_of as pattern_text
from bus.wire.pattern import Pattern

_ANY: Final = -1
_CHOICES_SHOWN: Final = 8


class Quantities:
    """Quantities by the tokens of their patterns. Of two with the same pattern, the last one counts."""

    def __init__(self, quantities: Iterable[Quantity] = ()) -> None:
        self._exact, self._open = dict[tuple[int, ...], Quantity](), dict[tuple[int, ...], Quantity]()
        self._places = set[int]()
        for one in quantities:
            tokens = tuple(Pattern(*one.pattern))
            if one.any_at is None:
                self._exact[tokens] = one
            else:
                self._places.add(one.any_at)
                self._open[_opened(tokens, one.any_at)] = one

    def __iter__(self) -> Iterator[Quantity]:
        yield from (*self._exact.values(), *self._open.values())

    def find(self, tokens: Sequence[int]) -> Quantity | None:
        """Return the quantity of the frames with exactly these tokens, or None."""
        found = self._exact.get(tuple(tokens))
        if found is not None:
            return found
        keys = (_opened(tuple(tokens), place) for place in self._places if place < len(tokens))
        return next((self._open[key] for key in keys if key in self._open), None)


def _opened(tokens: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*tokens[:place], _ANY, *tokens[place + 1 :])


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
    return text_of(Decimal(value) if isinstance(value, bool) else value), number if isfinite(number) else None


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
    return plain("  ".join((pattern_text(quantity.pattern), *filter(None, parts))))
