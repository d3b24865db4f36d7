"""Logs of BUSMASTER, of the form that it writes, and SavvyCAN after it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bus.wire.identifier import EXTENDED, REMOTE
from capture.formats.table import BY_KEY, format_of
from tests.capture.formats.field import listed, read_back

BUSMASTER = BY_KEY["busmaster"]
HEAD = """\
***BUSMASTER Ver 3.2.2***
***PROTOCOL CAN***
***NOTE: PLEASE DO NOT EDIT THIS DOCUMENT***
***[START LOGGING SESSION]***
***START DATE AND TIME 20:11:2013 14:19:9:38***
***{base}***
***{mode} MODE***
***START CHANNEL BAUD RATE***
***CHANNEL 1 - Kvaser - Virtual #0 (Channel 0), Serial Number- 0 - 500000 bps***
***END CHANNEL BAUD RATE***
***START DATABASE FILES (DBF/DBC)***
***C:\\car.dbf***
***END OF DATABASE FILES (DBF/DBC)***
***<Time><Tx/Rx><Channel><CAN ID><Type><DLC><DataBytes>***
"""
TAIL = "***END DATE AND TIME 20:11:2013 14:20:0:12***\n***[STOP LOGGING SESSION]***\n\n"
DAY_NS = int(datetime(2013, 11, 20, tzinfo=UTC).timestamp()) * 10**9
BEGAN_NS = DAY_NS + ((14 * 60 + 19) * 60 + 9) * 10**9 + 38 * 10**6


def of(text: str, tmp_path: Path) -> tuple[list[tuple[object, ...]], list[str]]:
    path = tmp_path / "x.log"
    path.write_text(text)
    assert format_of("x.log", path.read_bytes()) is BUSMASTER
    found, told, _ = read_back(path, BUSMASTER)
    return listed(found), told


def times(text: str, tmp_path: Path) -> list[int]:
    return [int(str(row[0])) for row in of(text, tmp_path)[0]]


def test_a_log_in_hex_with_times_of_day(tmp_path: Path) -> None:
    lines = [
        "14:19:11:4184 Tx 1 0x099 s 8 00 11 22 33 44 55 66 77 ",
        "14:19:11:4174 Rx 2 0x18FEF100 x 3 0A 0B 0C ",
        "14:19:12:0000 Rx 2 0x200 sr 8 00 00 00 00 00 00 00 00 ",
        "14:19:12:0001 Rx 1 0x1 xr 0 ",
    ]
    rows, told = of(HEAD.format(base="HEX", mode="SYSTEM") + "\n".join(lines) + "\n" + TAIL, tmp_path)
    second = DAY_NS + ((14 * 60 + 19) * 60 + 11) * 10**9
    assert rows == [
        (second + 418_400_000, "can0", True, 0x99, 8, 0, False, bytes.fromhex("0011223344556677")),
        (second + 417_400_000, "can1", False, EXTENDED | 0x18FEF100, 3, 0, False, b"\x0a\x0b\x0c"),
        (second + 10**9, "can1", False, REMOTE | 0x200, 8, 0, False, bytes(8)),
        (second + 10**9 + 100_000, "can0", False, EXTENDED | REMOTE | 1, 0, 0, False, b""),
    ]
    assert told == []


def test_a_log_in_decimal(tmp_path: Path) -> None:
    text = HEAD.format(base="DEC", mode="SYSTEM") + "14:19:11:4184 Tx 1 0021 s 2 010 255 \n"
    rows, told = of(text, tmp_path)
    assert [row[3:] for row in rows] == [(21, 2, 0, False, b"\x0a\xff")]
    assert told == []


def test_times_since_the_start_and_since_the_frame_before(tmp_path: Path) -> None:
    lines = "00:00:00:8549 Tx 1 0x21 s 0 \n00:00:01:0010 Rx 2 0x21 s 0 \n25:00:00:0000 Rx 2 0x21 s 0 \n"
    text = HEAD.format(base="HEX", mode="ABSOLUTE") + lines
    assert times(text, tmp_path) == [
        BEGAN_NS + 854_900_000, BEGAN_NS + 1_001_000_000, BEGAN_NS + 90_000 * 10**9,
    ]  # fmt: skip
    text = HEAD.format(base="HEX", mode="RELATIVE") + lines
    assert times(text, tmp_path) == [
        BEGAN_NS + 854_900_000, BEGAN_NS + 1_855_900_000, BEGAN_NS + 90_001_855_900_000,
    ]  # fmt: skip


def test_times_of_day_go_on_behind_midnight_and_back_where_channels_are_in_no_order(tmp_path: Path) -> None:
    lines = "".join(f"{time} Rx 1 0x21 s 0 \n" for time in (
        "14:19:10:0000", "23:59:59:9990", "00:00:00:0010", "23:59:59:9991", "00:00:00:0020", "13:00:00:0000",
    ))  # fmt: skip
    found = times(HEAD.format(base="HEX", mode="SYSTEM") + lines, tmp_path)
    midnight_ns = DAY_NS + 86_400 * 10**9
    assert [one - midnight_ns for one in found[1:]] == [
        -1_000_000, 1_000_000, -900_000, 2_000_000, 13 * 3600 * 10**9,
    ]  # fmt: skip


def test_a_second_session_has_a_start_of_its_own(tmp_path: Path) -> None:
    one = HEAD.format(base="DEC", mode="SYSTEM") + "14:19:11:0000 Tx 1 0021 s 1 010 \n" + TAIL
    two = HEAD.format(base="HEX", mode="ABSOLUTE").replace("20:11:2013", "21:11:2013")
    rows, told = of(one + two + "00:00:00:0000 Tx 1 0x21 s 1 10 \n", tmp_path)
    assert [(row[0], row[3], row[-1]) for row in rows] == [
        (DAY_NS + 51_551 * 10**9, 21, b"\x0a"), (BEGAN_NS + 86_400 * 10**9, 0x21, b"\x10"),
    ]  # fmt: skip
    assert told == []


def test_a_log_of_savvycan_has_ms_and_counts_from_channel_0(tmp_path: Path) -> None:
    text = (
        HEAD.format(base="HEX", mode="SYSTEM")
        + "14:19:12:992 Rx 0 0000021A s 1 FE \n14:19:12:993 Rx 1 01 s 0 \n"
    )
    rows, told = of(text, tmp_path)
    assert [row[:4] for row in rows] == [
        (DAY_NS + 51_552_992_000_000, "can0", False, 0x21A), (DAY_NS + 51_552_993_000_000, "can1", False, 1),
    ]  # fmt: skip
    assert told == []


def test_a_log_of_j1939_has_columns_of_its_own(tmp_path: Path) -> None:
    columns = (
        "<Time><Channel><CAN ID><PGN><Type><Source Node><Destination Node><Priority><Tx/Rx><DLC><DataBytes>"
    )
    text = f"""\
***BUSMASTER 2.5.0***
***PROTOCOL J1939***
***START DATE AND TIME 20:11:2013 14:19:9:38***
***HEX***
***SYSTEM MODE***
***{columns}***
14:19:11:0000 1 18eeff00 0x00EE00 ACL 00  FF  006 Tx 8 01 00 00 00 00 00 00 80 \n"""
    rows, told = of(text, tmp_path)
    assert [row[2:] for row in rows] == [
        (True, EXTENDED | 0x18EEFF00, 8, 0, False, bytes.fromhex("0100000000000080"))
    ]
    assert told == []


@pytest.mark.parametrize(
    "line",
    ["14:19:11 Tx 1 0x21 s 0", "14:19:11:0 Tx 1 0x21 q 0", "14:19:11:0 Tx 1 0x821 s 0",
     "14:19:11:0 Tx 1 0x21", "14:19:11:0 Tx 1 0x21 s 2 11", "14:19:11:0 Tx 1 0x21 s 9 11", "hello",
     "14:19:11:0 Tx 1 -0x21 s 0", "14:19:11:0 Tx 1 -1 s 0", "14:19:11:0 Tx 1 1_0 s 0",
     "14:19:11:0 Tx -1 0x21 s 0", "14:19:11:0 Tx 1 0x21 s 1 1FF"],
)  # fmt: skip
def test_a_line_that_is_none_is_counted(line: str, tmp_path: Path) -> None:
    rows, told = of(HEAD.format(base="HEX", mode="SYSTEM") + f"{line}\n14:19:11:0 Tx 1 0x21 s 0 \n", tmp_path)
    assert len(rows) == 1
    assert told == [f"left out: 1 lines that are no CAN frame, such as {line!r}"]


@pytest.mark.parametrize("base", ["HEX", "DEC"])
def test_a_log_cut_at_any_byte_loses_at_most_its_last_line_and_invents_nothing(
    base: str, tmp_path: Path
) -> None:
    data = "11 AB 00" if base == "HEX" else "011 255 000"
    line = f"14:19:11:4184 Tx 1 0021 s 3 {data} \n14:19:11:4184 Tx 1 0021 sr 1 \n"
    whole, before = (HEAD.format(base=base, mode="SYSTEM") + line * 3).encode(), 0
    path = tmp_path / "x"
    path.write_bytes(whole)
    frames = listed(read_back(path, BUSMASTER)[0])
    for cut in range(whole.index(b"14:19:11"), len(whole) + 1):
        path.write_bytes(whole[:cut])
        found = listed(read_back(path, BUSMASTER)[0])
        assert found == frames[: len(found)], cut
        assert len(found) >= before, cut
        before = len(found)
    assert before == len(frames) == 6


def test_a_date_of_another_form_is_told(tmp_path: Path) -> None:
    text = HEAD.format(base="HEX", mode="ABSOLUTE").replace("20:11:2013 14:19:9:38", "today")
    rows, told = of(text + "00:00:01:0000 Tx 1 0x21 s 0 \n", tmp_path)
    assert [row[0] for row in rows] == [10**9]
    assert told[0].startswith("note: 1 dates of a form that is not read")
