"""The values in a line of a meter: `1-0:1.8.1(000123.456*kWh)`. Pure.

Behind the code stand values in brackets, each with its unit. Source: IEC 62056-21, section 6.5, and the P1
Companion Standard 5.0.2, section 6.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from bridges.protocols.blocks import Field
from bridges.protocols.p1.codes import CODE, CURRENT, TIME, UNITS, is_number, other_unit

_LINE: Final = re.compile(rf"{CODE}((?:\([ -'*-~]*\))+)", re.ASCII)
_VALUE: Final = re.compile(r"\(([^)]*)\)")
_TIME: Final = re.compile(r"\d{10}(?:\d\d)?[SW]?|\d\d-\d\d-\d\d[ ,]\d\d:\d\d(?::\d\d)?", re.ASCII)
_NEVER: Final = "700101"
"""The date of a reading that never was, on meters behind the meter."""


class Line(NamedTuple):
    """A line in its parts. `channel`: "" if it has none; `code` is without `CURRENT`."""

    channel: str
    code: str
    values: Sequence[str]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.channel, self.code) if self.channel else (self.code,)


def parse(line: str) -> Line | None:
    """Return a line in its parts; None if it is none of a meter."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return Line(found[1] or "", found[2].removesuffix(CURRENT), _VALUE.findall(found[3]))


def fields_of(line: Line) -> list[Field]:
    """Return the fields of a line: one value, with its time if there is one; other lines whole, as text."""
    match line.values:
        case [value]:
            return [_field(line, value)]
        case [time, value] if _TIME.fullmatch(time):
            return _timed(line, time, value)
        case [value, time] if _TIME.fullmatch(time):
            return _timed(line, time, value)
        case [time, _, _, _, _, unit, value] if _TIME.fullmatch(time) and not unit[:1].isdigit():
            return _timed(line, time, f"{value}*{unit}")
    return [Field(line.names, "".join(f"({value})" for value in line.values), is_number=False)]


def _timed(line: Line, time: str, value: str) -> list[Field]:
    if time.startswith(_NEVER):
        return [Field(line.names, "")]
    return [_field(line, value), Field((*line.names, TIME), time, is_number=False)]


def _field(line: Line, written: str) -> Field:
    """Return the field of a value. In another unit than that of its code it has a name of its own."""
    value, star, unit = written.rpartition("*")
    if not star:
        value, unit = unit, ""
    other = other_unit(line.code, unit)
    if other:
        return Field((*line.names, other), value, unit, True)
    unit = UNITS.get(line.code) or unit if unit else ""
    return Field(line.names, value, unit, is_number(line.code, unit))
