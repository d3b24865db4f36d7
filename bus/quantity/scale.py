"""The scale of a value: `raw * scale + offset` in decimal arithmetic, so that 214 * 0.1 is 21.4. Pure."""

from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from math import isfinite
from typing import Final, NamedTuple

Number = int | float | Decimal
"""A number: an integer of a device, a decimal that was made of one, or a float that is not finite."""

EXACT: Final = Context(prec=60, Emin=-9999, Emax=9999, traps=[DivisionByZero, InvalidOperation, Overflow])
"""64 bits times a float of 17 digits, plus another, have fewer digits."""


class Scale(NamedTuple):
    """The line from a raw number to a value. `scale` is not 0."""

    scale: Decimal = Decimal(1)
    offset: Decimal = Decimal(0)

    @classmethod
    def of(cls, scale: float = 1, offset: float = 0) -> "Scale":
        """Return the scale of numbers as they stand in a file: 0.1 is exactly a tenth."""
        return cls(decimal_of(scale), decimal_of(offset))

    @property
    def is_plain(self) -> bool:
        return self == PLAIN

    def value(self, raw: Number) -> Number:
        """Return the value of a raw number. One that is not finite has no other value than itself, or its
        opposite."""
        if self.is_plain:
            return raw
        if isinstance(raw, float) and not isfinite(raw):
            return raw if self.scale > 0 else -raw
        return EXACT.add(EXACT.multiply(decimal_of(raw), self.scale), self.offset)

    def raw(self, value: Number) -> Number:
        """Return the number that has this value: an integer if it is one, else a decimal.

        An integer is returned only if its value is `value` exactly.
        """
        if isinstance(value, float) and not isfinite(value):
            return value if self.scale > 0 else -value
        exact = decimal_of(value)
        if exact.adjusted() > 400:
            raise ValueError(f"{value} is out of range")
        found = exact if self.is_plain else EXACT.divide(EXACT.subtract(exact, self.offset), self.scale)
        whole = found.to_integral_value(context=EXACT)
        fits = EXACT.add(EXACT.multiply(whole, self.scale), self.offset) == exact
        return int(whole) if fits and not (whole.is_zero() and found.is_signed()) else found


def decimal_of(number: Number) -> Decimal:
    """Return a finite number as a decimal: a float by the shortest decimal that reads back as it."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


PLAIN: Final = Scale()
