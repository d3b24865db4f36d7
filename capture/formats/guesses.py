"""Guesses at what no heading tells of a table of CAN frames: units of times, and bases. Pure."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from bus.wire.identifier import STANDARD_MAX
from capture.formats.dates import date_ns
from capture.formats.heading import NS, Heading
from capture.formats.source import LeftOut
from capture.schema import TIME_MAX_NS

_ROWS: Final = 500
_NUMBER: Final = re.compile(r"(?=[.,]?\d)\d{0,19}(?:[.,]\d{0,40})?(?:[eE][+-]?\d{1,2})?$")
_CLOCK: Final = re.compile(r"(\d{1,4}):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?$")
_DATED: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(?:\s*(Z|UTC|[+-]\d\d:?\d\d))?$"
)
_DIGIT: Final = re.compile(r"\d")
_CELL_CHARS: Final = 48
_SINCE_S, _UNTIL_S = 946_684_800, 4_102_444_800  # 2000 and 2100
_EPOCHS: Final = ("ns", "us", "ms", "s")
_STEP_US, _STEP_S_MAX = 50, 2
_NO: Final = ("0", "false", "std", "standard", "s", "no", "n", "11")
_SEVERAL: Final = 8
_HEX_MOST, _STANDARD_DIGITS = 8, 4
_HEX_DIGITS: Final = re.compile(r"[0-9A-Fa-f]{1,8}$")
_TOKEN: Final = re.compile(r"[0-9A-Za-z]+")
_IN: Final = {10: "decimal", 16: "hex"}


def ns_of(text: str, unit_ns: int) -> int | None:
    """Return a time as ns: a number in units, a date, or a time of day; None if it is none.

    What is finer than a ns is rounded. A date without a zone is UTC.
    """
    if len(text) > _CELL_CHARS or not _DIGIT.search(text):
        return None
    with suppress(ValueError, ArithmeticError):
        found = (
            _clock_ns(text)
            if _NUMBER.match(text) is None
            else _rounded(Decimal(text.replace(",", ".")), unit_ns)
        )
        return found if 0 <= found <= TIME_MAX_NS else None
    return None


def _rounded(value: Decimal, unit_ns: int) -> int:
    return int(value * unit_ns + Decimal("0.5")) if value < TIME_MAX_NS else -1


def _clock_ns(text: str) -> int:
    if found := _DATED.match(text):
        return _second_ns(found[1], found[3] or "") + int((found[2] or "").ljust(9, "0"))
    if found := _CLOCK.match(text):
        seconds = (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3])
        return seconds * 10**9 + int((found[4] or "").ljust(9, "0"))
    return date_ns(text)


@lru_cache(maxsize=64)
def _second_ns(text: str, zone: str) -> int:
    return round(datetime.fromisoformat(text + ("Z" if zone in ("", "UTC") else zone)).timestamp()) * 10**9


def guessed(heading: Heading, lines: Sequence[bytes], told: LeftOut) -> Heading:
    """Return a heading that tells all, by the first rows of its table. What is a guess is told."""
    rows = [_cells(line, heading.delimiter) for line in lines[:_ROWS]]
    unit = _unit(_column(rows, heading.places["time"])) if not heading.unit_ns else ""
    places = heading.places["id"], heading.places.get("extended")
    id_base, is_sure = _id_base([one for row in rows if (one := _marked(row, *places))], heading.id_base)
    first, last = heading.octets
    octet_base = heading.octet_base or _octet_base([" ".join(row[first : last + 1]) for row in rows])
    is_plain = octet_base == heading.octet_base or octet_base == 16
    for is_known, what, word, name in (
        (not unit, "unit of times", unit, "time_ms"),
        (is_sure, "base of identifiers", _IN[id_base], "ID (dec)"),
        (is_plain, "base of data", _IN[octet_base], "data (hex)"),
    ):
        if not is_known:
            told.note(f"{what} that the heading does not tell, as `{name}` would: {word} is taken")
    unit_ns = heading.unit_ns or NS[unit or "s"]
    return replace(heading, unit_ns=unit_ns, id_base=id_base, octet_base=octet_base)


def _marked(row: list[str], place: int, mark: int | None) -> tuple[str, bool] | None:
    """Return the identifier of a row, and whether the row says that it is a standard one."""
    if place >= len(row):
        return None
    return row[place], mark is not None and mark < len(row) and row[mark].lower() in _NO


def _cells(line: bytes, delimiter: bytes) -> list[str]:
    return [cell.strip(' "\r') for cell in line.decode("latin-1").split(delimiter.decode())]


def _column(rows: Iterable[list[str]], place: int) -> list[str]:
    return [row[place] for row in rows if 0 <= place < len(row)]


def _unit(cells: list[str]) -> str:
    """Return the unit of times, "" where they are dates and need none.

    Numbers that are times since 1970 say their unit. Others are s where they have a fraction; else us, or ms
    where frames follow each other in steps that are too small for us.
    """
    found = [cell.replace(",", ".") for cell in cells if _DIGIT.search(cell) and _NUMBER.match(cell)]
    if not found:
        return "" if any(":" in cell for cell in cells) else "s"
    times, has_fraction = [Decimal(cell) for cell in found], any("." in cell for cell in found)
    step = abs(times[-1] - times[0]) / max(1, len(times) - 1)
    for unit in _EPOCHS:
        least, most = (limit * (10**9 // NS[unit]) for limit in (_SINCE_S, _UNTIL_S))
        if least <= times[0] < most and (unit != "s" or has_fraction or step <= _STEP_S_MAX):
            return unit
    return "s" if has_fraction else "us" if step >= _STEP_US else "ms"


def _id_base(ids: list[tuple[str, bool]], told: int) -> tuple[int, bool]:
    """Return the base of identifiers, and whether that is no guess: letters or zeros in front say it.

    What is told is wrong where standard identifiers would be too large in hex, as in some tables of mdf2csv.
    """
    bare = {cell for cell, _ in ids if not cell.lower().startswith("0x") and _HEX_DIGITS.match(cell)}
    is_long = any(cell.isdigit() and len(cell) > _HEX_MOST for cell, _ in ids)
    if told == 10 or not (bare or is_long):
        return told or 16, True
    if not is_long and any(not cell.isdigit() or (cell[0] == "0" and len(cell) > 1) for cell in bare):
        return 16, True
    too_large = is_long or any(
        int(cell, 16) > STANDARD_MAX for cell, is_standard in ids if is_standard and cell in bare
    )
    if told:
        return (10, False) if too_large else (told, True)
    return (10 if too_large or _seem_decimal(bare) else 16), False


def _seem_decimal(cells: set[str]) -> bool:
    """Return whether identifiers of digits alone seem to be decimal.

    Some have four digits, as no standard one has in hex; or many have no letter, as in hex those of CANopen
    alone, such as 181 and 601.
    """
    if any(len(cell) == _STANDARD_DIGITS and int(cell) <= STANDARD_MAX for cell in cells):
        return True
    several = [cell for cell in cells if len(cell) > 1]
    return len(several) >= _SEVERAL and not all(cell[-2] in "08" for cell in several)


def _octet_base(cells: list[str]) -> int:
    """Return the base of data: 10 if some are of three digits, and none has a letter."""
    tokens = [token for cell in cells for token in _TOKEN.findall(cell) if " " in cell.strip()]
    is_plain = all(token.isdigit() for token in tokens)
    return 10 if is_plain and any(len(token) == 3 and int(token) < 256 for token in tokens) else 16
