"""Dates as tools write them into the heads of their text logs, without a zone: UTC here."""

import re
from datetime import UTC, datetime
from typing import Final

_MONTHS: Final = (
    "jan", "feb", "mar mär mrz", "apr", "may mai", "jun", "jul", "aug", "sep", "oct okt", "nov", "dec dez"
)  # fmt: skip
_BY_NAME: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_TIME: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,:](?P<rest>[\d.]+))?(?:\s+(?P<half>[ap])m)?"
)
_NAMED: Final = re.compile(
    rf"\w+\.?,?\s+(?P<month>[^\W\d]+)\.?\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<year>\d{{4}})$", re.I
)
_NUMBERED: Final = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    rf"|(?P<day_>\d{{1,2}})\.(?P<month_>\d{{1,2}})\.(?P<year_>\d{{4}}))[\sT]+{_TIME}(?:\s*Z|\s+UTC)?$",
    re.I,
)
_LETTERS, _NOON = 3, 12


def date_ns(text: str) -> int:
    """Return the time of a date such as `Sat Sep 30 03:06:13.191 pm 2017`, `30.9.2017 15:06:13.191` or
    `2017-09-30 15:06:13`, in ns since 1970. Months may be German.

    Raises `ValueError`: for all others, and for `9/10/2017`, where nobody knows which the month is.
    """
    found = _NAMED.match(text) or _NUMBERED.match(text)
    if not found:
        raise ValueError(text)
    parts = found.groupdict()
    year, month, day = (parts[name] or parts.get(f"{name}_") or "" for name in ("year", "month", "day"))
    number = int(month) if month.isdigit() else _BY_NAME.get(month.lower()[:_LETTERS], 0)
    time = _hour(found), int(found["minute"]), int(found["second"])
    whole = datetime(int(year), number, int(day), *time, tzinfo=UTC)
    return int(whole.timestamp()) * 10**9 + int((found["rest"] or "").replace(".", "")[:9].ljust(9, "0"))


def _hour(found: re.Match[str]) -> int:
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if not half or hour > _NOON:
        return hour
    return hour % _NOON + (_NOON if half == "p" else 0)
