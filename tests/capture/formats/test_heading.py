"""Headings of tables: which are those of CAN frames, and what they tell."""

import re

import pytest

from capture.formats.guesses import ns_of
from capture.formats.heading import LOOKS, NS, heading_of

HEADINGS = {
    "Time Stamp,ID,Extended,Dir,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8": (0, 1, (6, 13), NS["us"], 16),
    "timestamp,arbitration_id,extended,remote,error,dlc,data": (0, 1, (6, 6), NS["s"], 16),
    "TimestampEpoch;BusChannel;ID;IDE;DLC;DataLength;Dir;EDL;BRS;DataBytes": (0, 2, (9, 9), NS["s"], 16),
    "time,addr,bus,data": (0, 1, (3, 3), 0, 0),
    "Time Stamp,ID,data": (0, 1, (2, 2), 0, 0),
    "time_ms,ID,Extended,D1,D2": (0, 1, (3, 4), NS["ms"], 0),
    "No.,Time [s],CAN-ID (dec),Data Bytes": (1, 2, (3, 3), NS["s"], 10),
    "Abs Time\tMessage ID\tByte0\tByte1": (0, 1, (2, 3), 0, 0),
    "rel_time_ms,msg_id,payload,": (0, 1, (2, 2), NS["ms"], 0),
    '"Timestamp","Identifier","b[0]","b[1]"': (0, 1, (2, 3), 0, 0),
    "Timestamps,ID,data": (0, 1, (2, 2), 0, 0),
    "ts,ID,data": (0, 1, (2, 2), 0, 0),
    "t_us,ID,data,D1": (0, 1, (2, 2), NS["us"], 0),
    "time (milliseconds),ID,data": (0, 1, (2, 2), NS["ms"], 0),
    "time_nanoseconds,ID,data": (0, 1, (2, 2), NS["ns"], 0),
    "Time[µs],ID,data": (0, 1, (2, 2), NS["us"], 0),
}


@pytest.mark.parametrize("end", ["", "\r"])
@pytest.mark.parametrize("line", HEADINGS)
def test_a_heading(line: str, end: str) -> None:
    found = heading_of(f"{line}{end}".encode())
    assert found is not None
    told = (found.places["time"], found.places["id"], found.octets, found.unit_ns, found.id_base)
    assert told == HEADINGS[line]
    assert re.search(LOOKS, f"# a note\n{line}{end}\n1,2,3\n".encode(), re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    ["", "a,b,c", "Time,ID", "ID,Data Bytes", "Time,Data", "Time ID Data", "time,idle,data", "1.0,123,AB",
     "No.,Time,Source,Destination,Protocol,Length,Info", "Time,ID,D1,x,D2", "sometime,ID,data",
     "TimestampEpoch;BusChannel;ID;DataLength;Dir;DataBytes"],
)  # fmt: skip
def test_a_line_that_is_no_heading(line: str) -> None:
    assert heading_of(line.encode()) is None


TIMES = {
    "1.5": 1_500_000_000, "1,5": 1_500_000_000, "0": 0, "1.0000000004": 10**9, "1.0000000005": 10**9 + 1,
    "1e-05": 10_000, "1.5E+1": 15_000_000_000, ".5": 500_000_000, "5.": 5_000_000_000,
    "0:00:01": 10**9, "100:00:00.5": 360_000_500_000_000, "1970-01-01 00:00:01": 10**9,
    "1970-01-01T01:00:00.000000001+01:00": 1, "1969-12-31 23:00:00-0100": 0,
    "1970-01-01 00:00:01.5Z": 1_500_000_000,
    "1.1.1970 00:00:01.5": 1_500_000_000, "1970-01-01 00:00:01 UTC": 10**9,
}  # fmt: skip


@pytest.mark.parametrize("text", TIMES)
def test_a_time(text: str) -> None:
    assert ns_of(text, NS["s"]) == TIMES[text]


@pytest.mark.parametrize(
    "text",
    ["", "x", ".", "e5", "-1", "1e99", "1e999", "9" * 60, "9" * 19, "nan", "inf", "1.5.5",
     "1970-02-30 00:00:00", "1969-12-31 23:59:59", "0001-01-01 00:00:00", "9999-12-31 23:59:59",
     "1970-01-01 00:00:00+99:99", "1/2/2020"],
)  # fmt: skip
def test_a_text_that_is_no_time(text: str) -> None:
    assert ns_of(text, NS["s"]) is None
