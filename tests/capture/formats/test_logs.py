"""What tools of the field write into their text logs, beside what we write."""

from pathlib import Path
from typing import Any

import pytest

from capture.formats.table import BY_KEY, format_of
from tests.capture.formats.field import listed, read_back

CANOE = """\
date Sat Sep 30 15:06:13.191 2017
base hex  timestamps absolute
internal events logged
// version 9.0.0
Begin Triggerblock Sat Sep 30 03:06:13.191 pm 2017
   0.000000 Start of measurement
   0.015991 CAN 1 Status:chip status error passive - TxErr: 132 RxErr: 0
   0.015991 1  Statistic: D 0 R 0 XD 0 XR 0 E 0 O 0 B 0.00%
   2.501000 1  ErrorFrame
   2.5010001 2  18EBFF00x       Rx   d 8 01 A0 0F A6 60 3B D1 40 Length = 273910 BitCount = 141 ID = 418119424x
   3.248765 1  222             Tx   r 4
   3.297743 1  5BF0F73x        TxRq d 8 00 00 00 00 00 00 00 00
   3.297743 1  7FF             Tx   d F 00 00 00 00 00 00 00 00
  30.005021 CANFD   2 Rx        300  Generic_Name_12                   1 0 8  8 01 02 03 04 05 06 07 08   102203  133   303000 e0006659 46500250 4b140250 20011736 2001040d
  30.005041 CANFD   2 Tx   1C4D80A7x                                   0 1 f 64 {data}   102203  133   307000
  30.005061 CANFD   1 Rx        301                                   0 0 3  3 01 02 03   102203  133   300000 0 0
 113.016026 J1939TP FEE3p 6 0 0 - Rx   d 23 A0 0F A6 60 3B D1 40
End TriggerBlock
"""  # noqa: E501
BEGIN_NS = 1_506_783_973_191_000_000
TRACE = ";$FILEVERSION={}\r\n;$STARTTIME=25569.5\r\n;\r\n{}"


def of(key: str, text: str, tmp_path: Path) -> Any:
    """Return what `read_back` finds in a log of this format with this text."""
    path = tmp_path / f"x.{key}"
    path.write_text(text, encoding="utf-8")
    return read_back(path, BY_KEY[key])


def test_a_log_of_canoe(tmp_path: Path) -> None:
    text = CANOE.format(data=" ".join(f"{n:02X}" for n in range(64)))
    found, told, style = of("asc", text, tmp_path)
    assert style == {"step_ns": 1}
    assert [(row[0] - BEGIN_NS, *row[1:]) for row in listed(found)] == [  # type: ignore[operator]
        (2_501_000_000, "can0", False, 0x20000000, 8, 0, False, bytes(8)),
        (2_501_000_100, "can1", False, 0x98EBFF00, 8, 0, False, bytes.fromhex("01A00FA6603BD140")),
        (3_248_765_000, "can0", True, 0x40000222, 4, 0, False, bytes(4)),
        (3_297_743_000, "can0", True, 0x7FF, 8, 15, False, bytes(8)),
        (30_005_021_000, "can1", False, 0x300, 8, 1, True, bytes(range(1, 9))),
        (30_005_041_000, "can1", True, 0x9C4D80A7, 64, 2, True, bytes(range(64))),
        (30_005_061_000, "can0", False, 0x301, 3, 0, False, b"\1\2\3"),
    ]
    assert told[0].startswith("left out: 4 lines that are no CAN frame, such as '0.015991 CAN 1 Status")


def test_times_from_frame_to_frame_and_numbers_in_decimal(tmp_path: Path) -> None:
    lines = [
        "base dec timestamps relative",
        "1.5 1 100 Rx d 2 10 255",
        "0.25 1 2000x Rx d 0",
        "1.0 1 300 Rx d 1 256",
    ]
    found, told, _ = of("asc", "\n".join(lines) + "\n", tmp_path)
    rows = [(row[0], row[3], row[-1]) for row in listed(found)]
    assert rows == [(1_500_000_000, 100, b"\x0a\xff"), (1_750_000_000, 0x80000000 | 2000, b"")]
    assert len(told) == 1


def test_a_line_that_is_passed_by_takes_its_time_with_it(tmp_path: Path) -> None:
    lines = [
        "base hex timestamps relative",
        "1.5 1 100 Rx d 1 11",
        "0.25 1 Statistic: D 1 R 0 XD 0 XR 0 E 0 O 0 B 0.00%",
        "0.25 1 FFF Rx d 1 11",
        "0.5 1 200 Rx d 1 22",
    ]
    found, told, _ = of("asc", "\n".join(lines) + "\n", tmp_path)
    assert [row[0] for row in listed(found)] == [1_500_000_000, 2_500_000_000]
    assert told[0].startswith("left out: 2 lines")


TEXTS = {
    "candump": "(1.000000) can0 123#11\n",
    "asc": "base hex timestamps absolute\n1.0 1 123 Rx d 1 11\n",
    "trc": TRACE.format("1.1", " 1)  1000.0  Rx 0123 1 11\n"),
}


@pytest.mark.parametrize("key", TEXTS)
def test_a_mark_of_the_encoding_and_letters_of_names_cost_no_line(key: str, tmp_path: Path) -> None:
    form, text = BY_KEY[key], TEXTS[key]
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found, told, _ = read_back(path, form)
    assert [row[3:] for row in listed(found)] == [(0x123, 1, 0, False, b"\x11")]
    assert told == []
    assert format_of("x", path.read_bytes()) is form


def test_a_letter_in_a_name_ends_no_line(tmp_path: Path) -> None:
    """The second byte of `Å` in UTF-8 is NEL in Latin-1, where text ends a line."""
    line = "1.0 CANFD 1 Rx 123 Motor\u00c5 1 0 1 1 11 0 0 1000\n"
    found, told, _ = of("asc", f"base hex timestamps absolute\n{line}", tmp_path)
    assert (len(listed(found)), told) == (1, [])


TRACES = {
    "1.0": " 1)  1000  0123 2 11 22\n 2) 1841 00001234 3 RTR\n",
    "1.1": " 1)  1000.0  Rx 0123 2 11 22\n 2) 1841.0 Rx 00001234 3 RTR\n 3) 1900 Warng 0 1 08\n",
    "1.2": " 1)  1000.0  1 Rx 0123 2 11 22\n 2) 1841.000 1 Rx 00001234 3 RTR\n",
    "1.3": " 1)  1000.0  1 Rx 0123 - 2 11 22\n 2) 1841.000 1 Rx 00001234 - 3 RTR\n",
    "2.0": " 1 1000.000 DT 0123 Rx 2 11 22\n 2 1841.000 RR 00001234 Rx 3\n 3 1900.0 ST 0000 Rx 1 08\n",
    "2.1": " 1 1000.000 DT 1 0123 Rx - 2 11 22\n 2 1841.000 RR 1 00001234 Rx - 3\n",
}


def test_traces_of_all_versions(tmp_path: Path) -> None:
    for version, text in TRACES.items():
        path = tmp_path / f"{version}.trc"
        path.write_bytes(TRACE.format(version, text).encode())
        found, told, _ = read_back(path, BY_KEY["trc"])
        assert listed(found) == [
            (43_201 * 10**9, "can0", False, 0x123, 2, 0, False, b"\x11\x22"),
            (43_201_841_000_000, "can0", False, 0xC0001234, 3, 0, False, bytes(3)),
        ]  # fmt: skip
        assert len(told) == int(version in ("1.1", "2.0"))


ERRORS = {
    "1.0": " 2) 1842 0008 4 ERROR 00 19 08 09\n 3) 1843 FFFFFFFF 4 00 00 00 04 -- -- -- -- BUSLIGHT\n",
    "1.1": " 6) 1842.0 Error 0008 4 00 19 08 09\n 5) 1346.8 Warng FFFFFFFF 4 00 00 00 04 BUSLIGHT\n",
    "1.2": " 6) 1842.000 1 Error 0008 4 00 19 08 09\n 7) 1843.0 1 Error 0003 4 00 19 08 09\n",
    "1.3": " 6) 1842.000 1 Error 0008 - 4 00 19 08 09\n 7) 1843.0 1 Error 0008 - 4 00 19 08\n",
    "2.0": " 6 1842.000 ER Rx 08 00 19 08 09\n 7 1843.0 ER Rx 00 19 08 09\n",
    "2.1": " 6 1842.000 ER 1 - Rx - 5 08 00 19 08 09\n 9 1843.0 EC 1 - Rx - 2 08 09\n",
}


@pytest.mark.parametrize("version", ERRORS)
def test_error_frames_of_traces_are_those_of_the_kernel(version: str, tmp_path: Path) -> None:
    """An error of no bit, form or stuffing, of who sent, in the slot of the acknowledgement."""
    found, told, _ = of("trc", TRACE.format(version, ERRORS[version]), tmp_path)
    data = bytes((0, 0, 0x80, 0x19, 0, 0, 9, 8))
    assert listed(found) == [(43_201_842_000_000, "can0", False, 0x20000288, 8, 0, False, data)]
    assert [line.partition(",")[0] for line in told] == ["left out: 1 lines that are no CAN frame"]


def test_an_error_frame_of_a_trace_tells_a_wrong_bit_that_was_received(tmp_path: Path) -> None:
    found, told, _ = of("trc", TRACE.format("2.1", " 6 1.0 ER 2 - Rx - 5 04 01 02 03 00\n"), tmp_path)
    assert [(row[1], row[-1]) for row in listed(found)] == [("can1", bytes((0, 0, 4, 2, 0, 0, 0, 3)))]
    assert told == []


def test_days_of_a_trace_may_end_with_a_semicolon_as_version_1_2_writes_them(tmp_path: Path) -> None:
    text = ";$FILEVERSION=1.2\n;$STARTTIME=25569.5;\n 1)  1000.0  1 Rx 0123 2 11 22\n"
    found, told, _ = of("trc", text, tmp_path)
    assert ([row[0] for row in listed(found)], told) == ([43_201 * 10**9], [])


EIGHT = "11 22 33 44 55 66 77 88"


@pytest.mark.parametrize(
    ("key", "text", "whole"),
    [
        ("candump", "(1.0) can0 1#\n(2.0) can0 123#1122334455667788", False),
        ("candump", "(1.0) can0 001#\n(2.0) can0 123#1122334455667788", True),
        ("candump", "(1.0) can0 001#\n(2.0) can0 123#11223344556677", False),
        ("candump", "(1.0) can0 001#\n(2.0) can0 123##0" + "11" * 64, True),
        ("candump", "(1.0) can0 001#\n(2.0) can0 123##0" + "11" * 8, False),
        ("candump", "(1.0) can0 001# R\n(2.0) can0 123#1122334455667788", False),
        ("candump", "(1.0) can0 001# R\n(2.0) can0 123#11 T", True),
        ("candump", "(1.0) can0 001#1122334455667788_9\n(2.0) can0 123#1122334455667788", False),
        ("candump", "(1.0) can0 001#\n(2.0) can0 123#11\r", True),
        ("asc", f"base hex  timestamps absolute\n0.1 1  1 Rx d 0\n0.2 1  123 Rx d 8 {EIGHT}", True),
        ("asc", f"base hex  timestamps absolute\n0.1 1  1 Rx d 0\n0.2 1  123 Rx d 8 {EIGHT[:-1]}", False),
        ("asc", f"base dec  timestamps absolute\n0.1 1  1 Rx d 0\n0.2 1  123 Rx d 8 {EIGHT}", False),
        ("asc", "base hex  timestamps absolute\n0.1 1  1 Rx d 0\n0.2 CANFD 1 Rx 12 0 0 1 1 22 0 0 10", False),
        ("trc", TRACE.format("1.1", f"1) 1.0 Rx 0001 0\n2) 2.0 Rx 0123 8 {EIGHT}"), True),
        ("trc", TRACE.format("1.1", f"1) 1.0 Rx 0001 0\n2) 2.0 Rx 0123 8 {EIGHT[:-3]}"), False),
        ("trc", TRACE.format("1.1", "1) 1.0 Rx 0001 0\n2) 2.0 Rx 00000123 4 RTR"), True),
        ("trc", TRACE.format("2.0", "1 1.0 DT 0001 Rx 0\n2 2.0 RR 00000123 Rx 4"), True),
        ("trc", TRACE.format("2.0", "1 1.0 DT 0001 Rx 0\n2 2.0 RR 00000123 Rx 1"), False),
        ("candump", " can0  001   [0]\n can0  123    [8]  " + EIGHT, True),
        ("candump", " can0  001   [0]\n can0  123    [8]  " + EIGHT[:-1], False),
    ],
)
def test_a_last_line_without_an_end_counts_if_it_is_whole(
    key: str, text: str, whole: bool, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(text.encode())
    found, told, _ = read_back(tmp_path / "x", BY_KEY[key])
    rows = listed(found)
    assert [row[3] & 0x7FF for row in rows if row[3] != 1] == [0x123] * whole  # type: ignore[operator]
    assert any("times that are not" not in line for line in told) != whole


ASC_DATES = {
    "Sat Sep 30 15:06:13.191 2017": 1_506_783_973_191_000_000,
    "Sat Sep 30 03:06:13.191 PM 2017": 1_506_783_973_191_000_000,
    "Sam. Sep. 30 15:06:13:191 2017": 1_506_783_973_191_000_000,
    "30.9.2017 15:06:13.191": 1_506_783_973_191_000_000,
    "2017-09-30 15:06:13,191": 1_506_783_973_191_000_000,
    "Sat Sep 30 15:06:13.191456789 2017": 1_506_783_973_191_456_789,
    "2017-09-30T15:06:13.191Z": 1_506_783_973_191_000_000,
    "Mi. März 22 14:19:45 2017": 1_490_192_385_000_000_000,
    "Wed Mar 22 12:19:45 am 2017": 1_490_141_985_000_000_000,
    "Mit Dez 6 12:00:00.5 pm 2017": 1_512_561_600_500_000_000,
    "mer. août 2 12:00:00.000 2017": 1_501_675_200_000_000_000,
    "dim. juil. 2 12:00:00 2017": 1_498_996_800_000_000_000,
    "ven. juin 2 12:00:00 2017": 1_496_404_800_000_000_000,
    "mar dic 6 12:00:00 2016": 1_481_025_600_000_000_000,
}


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("date", ASC_DATES)
def test_a_date_of_any_tool_is_what_times_count_from(date: str, encoding: str, tmp_path: Path) -> None:
    text = f"date {date}\nbase hex  timestamps absolute\n0.25 1 123 Rx d 1 11\n"
    (tmp_path / "x.asc").write_bytes(text.encode(encoding))
    found, told, _ = read_back(tmp_path / "x.asc", BY_KEY["asc"])
    assert ([row[0] for row in listed(found)], told) == ([ASC_DATES[date] + 250_000_000], [])


@pytest.mark.parametrize(
    "date",
    [
        "Sat Foo 30 15:06:13 2017",
        "9/10/2017 15:06:13",
        "Sat Sep 31 15:06:13 2017",
        "Mon Jan 1 00:00:00 1601",
        "01.01.9999 00:00:00",
    ],
)
@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("asc", "date {}\nbase hex  timestamps absolute\n0.25 1 123 Rx d 1 11\n"),
        ("trc", ";   Start time: {}\n 1) 250 0123 1 11\n"),
    ],
)
def test_a_date_that_is_not_read_is_told_as_one(date: str, key: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text.format(date))
    found, told, _ = read_back(tmp_path / "x", BY_KEY[key])
    assert [row[0] for row in listed(found)] == [250_000_000]
    assert told == [
        f"note: 1 dates of a form that is not read: times do not count from them, such as {date!r}"
    ]


@pytest.mark.parametrize("date", ["18.12.2021 14:28:07.062", "2021-12-18 14:28:07.062.0"])
def test_a_trace_of_version_1_0_says_when_it_began_in_words_alone(date: str, tmp_path: Path) -> None:
    found, told, _ = of(
        "trc", f";##\n;    Start time: {date}\n;\n   1)     17535  00000100  1  07\n", tmp_path
    )
    assert ([row[0] for row in listed(found)], told) == ([1_639_837_704_597_000_000], [])


def test_the_number_of_days_of_a_trace_is_more_than_its_words(tmp_path: Path) -> None:
    text = TRACE.format("1.1", ";   Start time: 1.1.2001 00:00:00\n 1)  1000.0  Rx 0123 1 11\n")
    found, _, _ = of("trc", text, tmp_path)
    assert [row[0] for row in listed(found)] == [43_201 * 10**9]


def test_an_fd_frame_whose_flags_are_0_keeps_all_its_data(tmp_path: Path) -> None:
    data = " ".join(f"{n:02X}" for n in range(64))
    lines = [
        f"1.0 CANFD 4 Rx 4EE  0 1 f 64 {data} 1331984 11 0 46500250 460a0250 20011736 20010205",
        f"2.0 CANFD 4 Rx 4EF  0 0 f 64 {data} 1331984 11 0 46500250 460a0250 20011736 20010205",
        f"3.0 CANFD 4 Rx 4F0  1 0 8 8 {data[:23]} 1331984 11 0 46500250 460a0250 20011736 20010205",
        f"4.0 CANFD 4 Rx 4F1  0 0 8 8 {data[:23]} 1331984 11 0 46500250 460a0250 20011736 20010205",
    ]
    found, told, _ = of("asc", "base hex  timestamps absolute\n" + "\n".join(lines) + "\n", tmp_path)
    assert [row[4:7] for row in listed(found)] == [(64, 2, True), (64, 0, True), (8, 1, True), (8, 0, False)]
    assert told == []


def test_data_of_more_than_8_bytes_in_a_classic_line_are_those_of_an_fd_frame_or_no_frame(
    tmp_path: Path,
) -> None:
    octets = [f"{n:02X}" for n in range(64)]
    lines = [
        *(f"1.0 1 123 Rx d {code} {' '.join(octets[:size])}" for code, size in ((9, 12), (10, 16), (15, 64))),
        f"1.0 1 123 Rx d 9 {' '.join(octets[:8])} Length = 0 BitCount",
        f"1.0 1 123 Rx d F {' '.join(octets[:8])}",
        f"1.0 1 123 Rx d 10 {' '.join(octets[:12])}",
        f"1.0 1 123 Rx d 40 {' '.join(octets)}",
    ]
    found, told, _ = of("asc", "base hex  timestamps absolute\n" + "\n".join(lines) + "\n", tmp_path)
    assert [row[4:] for row in listed(found)] == [
        *((size, 0, True, bytes(range(size))) for size in (12, 16, 64)),
        *((8, code, False, bytes(range(8))) for code in (9, 15)),
    ]
    assert [line.split(",")[0] for line in told] == [
        "left out: 2 lines that are no CAN frame",
        "note: 3 frames of more than 8 bytes in lines of classic ones: read as those of CAN FD",
    ]


def test_a_remote_frame_is_none_of_can_fd_whatever_stands_behind_it(tmp_path: Path) -> None:
    line = f"1.0 1 123 Rx r 9 {' '.join(f'{n:02X}' for n in range(12))}\n"
    found, told, _ = of("asc", f"base hex  timestamps absolute\n{line}", tmp_path)
    assert [row[3:] for row in listed(found)] == [(0x40000123, 8, 9, False, bytes(8))]
    assert told == []


def test_a_comment_behind_a_frame_is_none_of_it(tmp_path: Path) -> None:
    lines = [
        "1.0 CANFD   1 Rx 123 1 0 9 12 00 01 02 03 04 05 06 07 08 09 0A 0B // Status of brakes",
        "1.0 1  18FEF100x Rx d 8 00 01 02 03 04 05 06 07 // FF",
        "1.0 1  123 Rx d 1 00 //",
        "// 1.0 1  124 Rx d 1 00",
    ]
    found, told, _ = of("asc", "base hex timestamps absolute\n" + "\n".join(lines) + "\n", tmp_path)
    assert [row[4:] for row in listed(found)] == [
        (12, 1, True, bytes(range(12))),
        (8, 0, False, bytes(range(8))),
        (1, 0, False, bytes(1)),
    ]
    assert told == []


def test_an_error_frame_in_a_line_of_canfd_is_one(tmp_path: Path) -> None:
    line = (
        "30.8 CANFD   5 Tx ErrorFrame Not Acknowledge error, dominant error flag fffe c7 31ca Arb. 556 44\n"
    )
    found, told, _ = of("asc", "base hex  timestamps absolute\n" + line, tmp_path)
    assert [row[:5] for row in listed(found)] == [(30_800_000_000, "can4", False, 0x20000000, 8)]
    assert told == []


@pytest.mark.parametrize("days", ["0", "NaN", "-5", "1e99", "tomorrow", ""])
def test_a_trace_that_says_no_time_at_which_it_can_have_begun_keeps_its_frames(
    days: str, tmp_path: Path
) -> None:
    text = f";$FILEVERSION=1.1\n;$STARTTIME={days}\n 1)  1000.0  Rx 0123 1 11\n"
    found, told, _ = of("trc", text, tmp_path)
    assert [row[0] for row in listed(found)] == [10**9]
    assert [line.rpartition(":")[0] for line in told] == ["note: 1 dates of a form that is not read"]


def test_a_trace_may_have_commas_in_its_numbers_as_german_machines_write_them(tmp_path: Path) -> None:
    text = ";$FILEVERSION=1.1\n;$STARTTIME=25569,5\n 3)         7,2  Rx         0300  1  01\n"
    found, told, _ = of("trc", text, tmp_path)
    assert ([row[0] for row in listed(found)], told) == ([43_200_007_200_000], [])
