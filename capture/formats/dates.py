"""Dates as tools write them into the heads of their text logs, mostly without a zone: UTC here. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from capture.schema import TIME_MAX_NS

_MONTHS: Final = (
    "jan ene gen", "feb fév", "mar mär mrz", "apr avr abr", "may mai mag", "jun juin giu", "jul juil lug",
    "aug aoû ago", "sep set", "oct okt ott", "nov", "dec dez déc dic",
)  # fmt: skip
_BY_NAME: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_TIME: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:[.,:](?P<rest>[\d.]+))?"
    r"(?:\s+(?P<half>[ap])m)?"
)
_NAMED: Final = re.compile(
    rf"\w+\.?,?\s+(?P<month>[^\W\d]+)\.?\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<year>\d{{4}})$", re.I
)
_NUMBERED: Final = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    rf"|(?P<day_>\d{{1,2}})\.(?P<month_>\d{{1,2}})\.(?P<year_>\d{{4}}))[\sT]+{_TIME}"
    r"(?:\s*Z|\s+UTC|(?P<zone>[+-]\d\d:\d\d))?$",
    re.I,
)
_LETTERS, _NOON = (4, 3), 12


def date_ns(text: str) -> int:
    """Return the time of a date such as `Sat Sep 30 03:06:13.191 pm 2017`, `30.9.2017 15:06:13.191` or
    `2017-09-30 15:06:13`, in ns since 1970. Months may be German, French, Italian or Spanish.

    Raises `ValueError`: for others, for `9/10/2017`, where nobody knows which the month is, and for a time
    that no frame can have, such as 1601, where the clock of a logger begins.
    """
    found = _NAMED.match(text) or _NUMBERED.match(text)
    if not found:
        raise ValueError(text)
    parts = found.groupdict()
    year, month, day = (parts[name] or parts.get(f"{name}_") or "" for name in ("year", "month", "day"))
    number = int(month) if month.isdigit() else _month(month.lower())
    time = _hour(found), int(found["minute"]), int(found["second"])
    zone = datetime.strptime(parts["zone"], "%z").tzinfo if parts.get("zone") else UTC
    whole = datetime(int(year), number, int(day), *time, tzinfo=zone)
    ns = int(whole.timestamp()) * 10**9 + int((found["rest"] or "").replace(".", "")[:9].ljust(9, "0"))
    if not 0 <= ns <= TIME_MAX_NS:
        raise ValueError(text)
    return ns


def _month(word: str) -> int:
    """Return the number of a month; 0, which is none, for another word."""
    return next((_BY_NAME[word[:some]] for some in _LETTERS if word[:some] in _BY_NAME), 0)


def _hour(found: re.Match[str]) -> int:
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if not half or hour > _NOON:
        return hour
    return hour % _NOON + (_NOON if half == "p" else 0)
