"""What candump shows on a console, kept in a file: lines as candump.c and lib.c of can-utils write them."""

from pathlib import Path

import pytest

from capture.formats.table import BY_KEY, format_of
from tests.capture.formats.field import listed, read_back, written

CANDUMP = BY_KEY["candump"]
EIGHT = bytes.fromhex("1122334455667788")
NO_TIME = "times that are not in the file, read as 0: candump -t a shows them"
NO_DATE = "dates that are not in the file, so times count from 1970: candump -t a shows them"


def rows_of(path: Path, text: str) -> tuple[list[tuple[object, ...]], list[str]]:
    (path / "dump.txt").write_text(text)
    assert format_of("dump.txt", text.encode()) is CANDUMP
    found, told, _ = read_back(path / "dump.txt", CANDUMP)
    return listed(found), told


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("  can0  123   [8]  11 22 33 44 55 66 77 88", (0x123, 8, 0, False, EIGHT)),
        ("  can0  123  [8] 11 22 33 44 55 66 77 88", (0x123, 8, 0, False, EIGHT)),
        ("  can0  123   [0] ", (0x123, 0, 0, False, b"")),
        ("  can0       123   [1]  07", (0x123, 1, 0, False, b"\7")),
        ("  can0  00000123   [1]  07", (0x80000123, 1, 0, False, b"\7")),
        ("  can0  123   [3]  remote request", (0x40000123, 3, 0, False, bytes(3))),
        ("  can0  123   [2]  31 32                     '12'", (0x123, 2, 0, False, b"12")),
        ("  can0  123   [3]  33`22`11                  `3\"\x11`", (0x123, 3, 0, False, EIGHT[:3])),
        ("  can0  123   [2]  00010001 00100010", (0x123, 2, 0, False, EIGHT[:2])),
        ("  can0  123   {E}  11 22 33 44 55 66 77 88", (0x123, 8, 14, False, EIGHT)),
        ("  can0  123   {2}  11 22", (0x123, 2, 0, False, EIGHT[:2])),
        ("  can0  123  [12]  " + "07 " * 12, (0x123, 12, 0, True, b"\7" * 12)),
        ("  can0  RX B E  123  [02]  11 22", (0x123, 2, 3, True, EIGHT[:2])),
        ("  can0  20000004   [8]  00 04 00 00 00 00 00 00   ERRORFRAME\n\tcontroller-problem{rx-overflow}",
         (0x20000004, 8, 0, False, b"\0\4" + bytes(6))),
        ("  \x1b[1mcan0\x1b[0m  123   [2]  11 22", (0x123, 2, 0, False, EIGHT[:2])),
        ("<0x123> [2] 11 22 ", (0x123, 2, 0, False, EIGHT[:2])),
        ("<0x00000123> [2] aa bb ", (0x80000123, 2, 0, False, b"\xaa\xbb")),
    ],
)  # fmt: skip
def test_a_frame(line: str, row: tuple[object, ...], tmp_path: Path) -> None:
    found, told = rows_of(tmp_path, f"{line}\n")
    assert found == [(0, "can0", False, *row)]
    assert told == [f"note: 1 {NO_TIME}"]


@pytest.mark.parametrize(
    ("stamps", "times", "left"),
    [
        (["1436509052.249713", "1436509053.000001"],
         [1_436_509_052_249_713_000, 1_436_509_053_000_001_000], []),
        (["1436509052.249713001", "1436509053.000000001"],
         [1_436_509_052_249_713_001, 1_436_509_053_000_000_001], []),
        (["2015-07-10 06:17:32.249713", "2015-07-11 00:00:00.5".ljust(26, "0")],
         [1_436_509_052_249_713_000, 1_436_572_800_500_000_000], []),
        (["000.000000", "000.100001", "000.200002"], [0, 100_001_000, 200_002_000], [f"note: 3 {NO_DATE}"]),
        (["000.000000", "000.100001", "000.099999"], [0, 100_001_000, 200_000_000], [f"note: 3 {NO_DATE}"]),
    ],
)  # fmt: skip
def test_times_of_all_sorts(stamps: list[str], times: list[int], left: list[str], tmp_path: Path) -> None:
    found, told = rows_of(tmp_path, "".join(f" ({stamp})  can1  123   [1]  07\n" for stamp in stamps))
    assert ([row[0] for row in found], told) == (times, left)


def test_frames_of_two_interfaces_that_are_close_make_no_pauses_of_times(tmp_path: Path) -> None:
    stamps = [f"{at // 1000:03}.{at % 1000:03}000" for at in (*range(0, 2000, 100), 1990, 1950)]
    found, _ = rows_of(tmp_path, "".join(f" ({stamp})  can1  123   [1]  07\n" for stamp in stamps))
    assert (found[19][0], found[-1][0]) == (1_900_000_000, 1_950_000_000)


def test_a_pause_in_front_of_a_line_that_is_no_frame_counts(tmp_path: Path) -> None:
    lines = [
        " (000.000000)  can0  123   [1]  07",
        " (000.500000)  can0  123   [1]  07",
        " (000.400000)  can0  123 [0001] (00|80:00:00000000) 07",
        " (000.300000)  can0  123   [1]  07",
    ]
    found, told = rows_of(tmp_path, "\n".join(lines) + "\n")
    assert [row[0] for row in found] == [0, 500_000_000, 1_200_000_000]
    assert [line.partition(",")[0] for line in told] == [
        "left out: 1 lines that are no CAN frame",
        "note: 3 dates that are not in the file",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  can0  123   [2]  11", "  can0  123   [9]  " + "11 " * 9, "  can0  FFF   [1]  11",
        "  can0  4FFFFFFF   [1]  11", "  can0  123  [13]  " + "11 " * 13, "\tlost in front of a word",
        " (2015-17-10 06:17:32.249713)  can0  123   [1]  07",
        "DROPCOUNT: dropped 2 CAN frames on 'can0' socket (total drops 2)", "# a word of mine",
        "  can0  123 [0008] (00|80:00:00000000) 11 22 33 44 55 66 77 88",
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_told_and_its_neighbours_stay(line: str, tmp_path: Path) -> None:
    found, told = rows_of(tmp_path, f"  can0  123   [1]  07\n{line}\n  can1  456   [1]  08\n")
    assert [row[1:4] for row in found] == [("can0", False, 0x123), ("can1", False, 0x456)]
    assert f"left out: 1 lines that are no CAN frame, such as {line.strip()[:60]!r}" in told


def test_directions_are_those_of_the_log_that_is_made_of_it(tmp_path: Path) -> None:
    sent = " (1436509052.249713)  can0  TX - -  123   [1]  07\n"
    (tmp_path / "x").write_text(f"{sent} (1436509052.249714)  can0  RX - -  123   [1]  08\n")
    found, told, style = read_back(tmp_path / "x", CANDUMP)
    assert found is not None
    assert told == []
    log = "(1436509052.249713) can0 123#07 T\n(1436509052.249714) can0 123#08 R\n"
    assert written(CANDUMP, found, style).decode() == log


def test_a_log_that_quotes_a_console_is_a_log(tmp_path: Path) -> None:
    text = "  can0  123   [1]  07\n(1.000000) can0 456#08\n"
    found, told = rows_of(tmp_path, text)
    assert [row[3] for row in found] == [0x456]
    assert told == ["left out: 1 lines that are none of candump -L, such as 'can0  123   [1]  07'"]


def test_a_file_with_a_sign_is_of_its_format_whatever_text_is_in_it() -> None:
    text = b"\n(1.000000) can0 123#11\n  can0  123   [1]  07\n"
    assert format_of("x", b"\x89MCAP0\r\n" + text) is BY_KEY["mcap"]
    assert format_of("x", b"\xd4\xc3\xb2\xa1" + text) is BY_KEY["pcap"]
