"""The way from the text that a device says to a value, and back. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from bus.quantity.coding import check_range
from bus.quantity.forms import Form, Value, read, text_in, text_of
from bus.quantity.scale import PLAIN, Number, Scale, decimal_of
from bus.text import decoded

Kind = Literal["number", "text", "hex"]
_SIGNS = ("+", "-")
Raw = int | Decimal | str
"""The content of an answer: a number, or text."""


@dataclass(frozen=True, slots=True)
class TextCoding:
    """The way from text to a value and back: `bridges.protocols.commands.ValueCoding` describes it.

    `no_value`: what a device says that has none. `choices`: the text of some answers, both ways. `fits` tells
    whether a text may be written.
    """

    kind: Kind
    scale: Scale = PLAIN
    no_value: frozenset[Raw] = frozenset()
    choices: Mapping[Raw, str] = field(default_factory=dict)
    fits: Callable[[bytes], bool] | None = None

    def decode(self, data: bytes, as_number: bool = False) -> Value | None:
        """Return the value in an answer; None if the device says that it has none.

        Raises ValueError for an answer that is no value.
        """
        text = decoded(data).strip()
        if text in self.no_value or (raw := raw_in(self.kind, text)) in self.no_value:
            return None
        if not as_number and raw in self.choices:
            return self.choices[raw]
        return raw if isinstance(raw, str) else self.scale.value(raw)

    def read(self, form: Form, data: bytes) -> Value:
        """Return the value that the data of a frame mean. Raises ValueError for what is none."""
        if form == "text" and self.kind == "text":
            return text_in(data)
        return read(form, data, self.choices.values())

    def encode(self, value: Value, low: float | None = None, high: float | None = None) -> bytes:
        """Return the text that writes a value from `low` to `high`. Raises ValueError for one that may not
        be written, or that is no number of the device exactly."""
        if isinstance(value, str) and (found := self._chosen(value)) is not None:
            return text_of(found).encode("latin-1")
        if self.kind == "text":
            return self._text(text_of(value))
        if isinstance(value, str):
            raise ValueError(f'"{value[:32]}" is no number')
        if isinstance(value, bool):
            raise ValueError("true and false are no numbers")
        check_range(value, low, high)
        return text_of(self._number(value, low is None and high is None)).encode()

    def _chosen(self, text: str) -> Raw | None:
        return next((raw for raw, name in self.choices.items() if name == text), None)

    def _number(self, value: Number, only_choices: bool) -> Number:
        raw = self.scale.raw(value)
        if self.scale.value(raw) != decimal_of(value):
            raise ValueError(f"{str(value)[:32]} is not exactly a number of the device, by its scale")
        if self.choices and only_choices and raw not in self.choices:
            raise ValueError(f"{str(value)[:32]} is none of the choices, and there is no min and max")
        return raw

    def _text(self, text: str) -> bytes:
        if self.choices:
            raise ValueError(f'"{text[:32]}" is none of the choices')
        try:
            data = text.encode("latin-1")
        except UnicodeEncodeError:
            raise ValueError(f'"{text[:32]}" has a character that is more than a byte') from None
        if not text.isprintable() or self.fits is None or not self.fits(data):
            raise ValueError(f'"{text[:32]}" is not what the device may be told')
        return data


def raw_in(kind: Kind, text: str) -> Raw:
    """Return the number, or the text, in an answer. Raises ValueError for what is none."""
    if kind == "text":
        return text
    if kind == "hex":
        plain = "".join(text.split())
        if len(plain) > 64 or not plain.isascii() or not plain.isalnum():
            raise ValueError("not hexadecimal digits")
        return int(plain, 16)
    sign, digits = (text[:1], text[1:].lstrip()) if text[:1] in _SIGNS else ("", text)
    found = read("text", (sign + digits).encode())  # scales write a sign, blanks, and the digits
    if not isinstance(found, int | Decimal):
        raise ValueError("not a number")
    return found
