"""Dates in the heads of logs: which are understood, as what time, and which are not."""

from datetime import UTC, datetime

import pytest

from capture.formats.dates import date_ns

DATES = {
    "Sat Sep 30 03:06:13.191 pm 2017": "2017-09-30 15:06:13.191",
    "Sat Sep 30 03:06:13.191 AM 2017": "2017-09-30 03:06:13.191",
    "Sat Sep 30 12:6:3 am 2017": "2017-09-30 00:06:03",
    "Sat Sep 30 12:06:13 am 2017": "2017-09-30 00:06:13",
    "Sat Sep 30 12:06:13 pm 2017": "2017-09-30 12:06:13",
    "Sat Sep 30 15:06:13 pm 2017": "2017-09-30 15:06:13",
    "Saturday, September 30 15:06:13 2017": "2017-09-30 15:06:13",
    "Mi. Mrz 1 00:00:00 2017": "2017-03-01 00:00:00",
    "Mittwoch Dezember 6 01:02:03,5 2017": "2017-12-06 01:02:03.5",
    "30.9.2017 15:06:13.191": "2017-09-30 15:06:13.191",
    "1.10.2017 15:06:13:191.25": "2017-10-01 15:06:13.19125",
    "2017-09-30T15:06:13.5+02:30": "2017-09-30 12:36:13.5",
    "2017-12-31 23:00:00-01:00": "2018-01-01 00:00:00",
    "2017-09-30T15:06:13Z": "2017-09-30 15:06:13",
}


@pytest.mark.parametrize("text", DATES)
def test_a_date(text: str) -> None:
    whole = datetime.fromisoformat(DATES[text]).replace(tzinfo=UTC)
    assert date_ns(text) == int(whole.timestamp()) * 10**9 + whole.microsecond * 1000


@pytest.mark.parametrize(
    ("text", "why"),
    [("9/10/2017 15:06:13", "9/10"), ("Sat Foo 30 15:06:13 2017", "month"), ("31.2.2017 00:00:00", "day")],
)
def test_a_text_that_is_no_date(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        date_ns(text)
