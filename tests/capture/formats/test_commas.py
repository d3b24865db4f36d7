"""Tables of CAN frames of the tools that write them, and of people who name columns as they like."""

import base64
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import can
import numpy as np
import pytest

from bus.wire.identifier import ERROR, EXTENDED, REMOTE
from capture.files import CaptureError
from capture.formats.exports import exported, frames_in
from capture.formats.imports import imported
from capture.formats.table import BY_KEY, format_of
from capture.frames import SWITCH
from tests.capture.formats.field import listed, read_back, some, written

CSV = BY_KEY["csv"]
GVRET = "Time Stamp,ID,Extended,Dir,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8\n"
OLD_GVRET = "Time Stamp,ID,Extended,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8\n"
PYTHON_CAN = "timestamp,arbitration_id,extended,remote,error,dlc,data\n"
CSS = "TimestampEpoch;BusChannel;ID;IDE;DLC;DataLength;Dir;EDL;BRS;DataBytes\n"
DATA = bytes.fromhex("FE3612FE690507AD")
Row = tuple[object, ...]


def of(text: str, tmp_path: Path) -> tuple[list[Row], list[str]]:
    """Return the frames of a table, and what is told of it."""
    path = tmp_path / "table.txt"
    path.write_bytes(text.encode())
    assert format_of("table.txt", path.read_bytes()) is CSV
    found, told, _ = read_back(path, CSV)
    return listed(found), told


def test_a_table_of_savvycan(tmp_path: Path) -> None:
    text = (
        GVRET
        + "166064001,0000021A,false,Rx,0,8,FE,36,12,FE,69,05,07,AD,\n"
        + "1581670628161551,18FEF100,true,Tx,1,2,AB,CD,00,00,00,00,00,00,\r\n"
        + "166064003,00000800,false,Rx,0,0,00,00,00,00,00,00,00,00,\n"
    )
    rows, told = of(text, tmp_path)
    assert rows == [
        (166_064_001_000, "can0", False, 0x21A, 8, 0, False, DATA),
        (1_581_670_628_161_551_000, "can1", True, EXTENDED | 0x18FEF100, 2, 0, False, b"\xab\xcd"),
        (166_064_003_000, "can0", False, EXTENDED | 0x800, 0, 0, False, b""),  # some files lack the mark
    ]
    assert told == []


def test_a_table_of_old_savvycan_without_directions(tmp_path: Path) -> None:
    rows, told = of(OLD_GVRET + "166064000,0000021A,false,2,3,FE,36,12\n", tmp_path)
    assert (rows, told) == ([(166_064_000_000, "can2", False, 0x21A, 3, 0, False, DATA[:3])], [])


def test_a_table_of_python_can(tmp_path: Path) -> None:
    lines = [
        f"1483389946.197,0x00dadada,1,0,0,8,{base64.b64encode(DATA).decode()}",
        "1483389946.1970001,0x7ff,0,1,0,4,",
        "1e-05,0x0,1,0,1,8,AAAAAAAAAAA=",
        f"0.30000000000000004,0x1,0,0,0,12,{base64.b64encode(bytes(12)).decode()}",
    ]
    rows, told = of(PYTHON_CAN + "\n".join(lines) + "\n", tmp_path)
    assert rows == [
        (1_483_389_946_197_000_000, "can0", False, EXTENDED | 0xDADADA, 8, 0, False, DATA),
        (1_483_389_946_197_000_100, "can0", False, REMOTE | 0x7FF, 4, 0, False, bytes(4)),
        (10_000, "can0", False, ERROR, 8, 0, False, bytes(8)),
        (300_000_000, "can0", False, 1, 12, 0, True, bytes(12)),
    ]
    assert told == []


def css_rows(delimiter: str) -> str:
    lines = [
        "1581670628.161550;1;123;0;0;0;0;0;0;",
        "1581670628.161750;2;1FFFFFFF;1;2;2;1;0;0;1234",
        f"1581670628.162000;1;7FF;0;15;64;0;1;1;{bytes(range(64)).hex()}",
        "1581670628.162300;1;123;0;3;3;0;1;0;123456",
        f"1581670628.163200;1;123;0;12;8;0;0;0;{DATA.hex()}",
    ]
    return (CSS + "\n".join(lines) + "\n").replace(";", delimiter)


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_a_table_of_css_electronics(delimiter: str, tmp_path: Path) -> None:
    rows, told = of(css_rows(delimiter), tmp_path)
    assert rows == [
        (1_581_670_628_161_550_000, "can0", False, 0x123, 0, 0, False, b""),
        (1_581_670_628_161_750_000, "can1", True, EXTENDED | 0x1FFFFFFF, 2, 0, False, b"\x12\x34"),
        (1_581_670_628_162_000_000, "can0", False, 0x7FF, 64, SWITCH, True, bytes(range(64))),
        (1_581_670_628_162_300_000, "can0", False, 0x123, 3, 0, True, b"\x12\x34\x56"),
        (1_581_670_628_163_200_000, "can0", False, 0x123, 8, 12, False, DATA),
    ]
    assert told == []


def test_a_table_of_css_electronics_with_relative_times_and_decimal_identifiers(tmp_path: Path) -> None:
    heading = CSS.replace("TimestampEpoch", "Timestamp")
    rows, told = of(heading + "0.000250;1;2047;0;1;1;0;0;0;12\n1.5;1;419361280;1;0;0;0;0;0;\n", tmp_path)
    assert [(row[0], row[3]) for row in rows] == [(250_000, 2047), (1_500_000_000, EXTENDED | 0x18FEF200)]
    assert told == [
        "note: 1 base of identifiers that the heading does not tell, as `ID (dec)` would: decimal is taken"
    ]


def test_a_table_of_lin_is_none_of_can(tmp_path: Path) -> None:
    text = "TimestampEpoch;BusChannel;ID;DataLength;Dir;DataBytes\n1581670639.5;1;1F;2;0;1234\n"
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(CaptureError, match=r"x\.csv: no heading with columns of time, identifier and data"):
        read_back(tmp_path / "x.csv", CSV)


HCRL = """\
1478198376.389427,0316,8,05,21,68,09,21,21,00,6f,R
1478198376.389636,018f,8,fe,5b,00,00,00,3c,00,00,T
1478198376.389864,05f0,2,f4,00,R
1478198376.390102,0000,0,R
1478198376.390303,18daf110,3,02,01,0c,R
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_of_hcrl_has_no_heading_and_a_label_behind_its_data(end: str, tmp_path: Path) -> None:
    rows, told = of(HCRL.replace("\n", end), tmp_path)
    assert [(int(str(row[0])) - 1_478_198_376 * 10**9, *row[3:]) for row in rows] == [
        (389_427_000, 0x316, 8, 0, False, bytes.fromhex("052168092121006f")),
        (389_636_000, 0x18F, 8, 0, False, bytes.fromhex("fe5b0000003c0000")),
        (389_864_000, 0x5F0, 2, 0, False, bytes.fromhex("f400")),
        (390_102_000, 0, 0, 0, False, b""),
        (390_303_000, 0x18DAF110 | EXTENDED, 3, 0, False, bytes.fromhex("02010c")),
    ]
    assert told == []


def test_a_table_of_hcrl_cut_at_any_byte_invents_no_frame(tmp_path: Path) -> None:
    rows, _ = of(HCRL, tmp_path)
    for size in range(HCRL.index("\n") + 1, len(HCRL)):
        found, _ = of(HCRL[:size], tmp_path)
        assert found == rows[: len(found)]
        assert len(found) >= HCRL[:size].count("\n")


S, HEX = (
    "note: 1 unit of times that the heading does not tell, as `time_ms` would: s is taken",
    "note: 1 base of identifiers that the heading does not tell, as `ID (dec)` would: hex is taken",
)
OTHERS: dict[str, tuple[str, list[str]]] = {
    "Time [ms];CAN ID (hex);DLC;Data\n1500.25;123;2;AB CD": ("", []),
    "Time (µs),Can-ID [hex],DLC,Data\n1500250,123,2,ABCD": ("", []),
    "time_ns\tframe_id_hex\tlen\tpayload\n1500250000\t123\t2\t0xAB 0xCD": ("", []),
    "t,id,data\n1.50025,0x123,ab-cd": ("", [S]),
    "# a note\nsep=;\nZeit;x\nTimestamp;Identifier;DLC;D0;D1\n1,50025;123;2;AB;CD": ("", [S, HEX]),
    '"Time","ID","note","Length","Data"\n" 1.50025 ","0x123","a, b","2","AB CD "': ("", [S]),
    "channel,time_s,arbitration_id,dlc,b0,b1,b2\ncan0,1.50025,0x123,2,0xAB,0xCD,": ("", []),
    "Time,ID,LEN,D1,D2,D3\n1.50025,0x123,2,171,205,000": (
        "",
        [S, "note: 1 base of data that the heading does not tell, as `data (hex)` would: decimal is taken"],
    ),
    "timestamps,CAN_DataFrame.ID,CAN_DataFrame.DataLength,CAN_DataFrame.DataBytes\n"
    "1970-01-01 01:00:01.500250+01:00,0x123,2,[171 205]": (
        "", ["note: 1 base of data that the heading does not tell, as `data (hex)` would: decimal is taken"],
    ),
    "Time;ID;Data\n0:00:01.50025;0x123;AB CD": ("", []),
    "Data,DLC,ID,Time\nABCD,2,0x123,1.50025": ("", [S]),
}  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_a_table_of_others_says_by_its_heading_and_first_rows_what_is_in_it(
    text: str, tmp_path: Path
) -> None:
    rows, told = of(f"{text}\n", tmp_path)
    assert rows == [(1_500_250_000, "can0", False, 0x123, 2, 0, False, b"\xab\xcd")]
    assert told == OTHERS[text][1]


def test_marks_in_words_are_read(tmp_path: Path) -> None:
    heading = "time_s,id_hex,Ext,RTR,Rx/Tx,Channel,DLC,Data\n"
    lines = [
        "1.0,123x,,0,R,vcan0,1,11", "2.0,123,Extended,false,Tx,vcan0,1,22", "3.0,123,29,no,tx,a,1,33",
        "4.0,123,11,True,Rx,,4,", "5.0,123,std,0,0,a-long-name-of-an-interface,1,44",
    ]  # fmt: skip
    rows, told = of(heading + "\n".join(lines) + "\n", tmp_path)
    assert [row[1:4] for row in rows] == [
        ("vcan0", False, EXTENDED | 0x123), ("vcan0", True, EXTENDED | 0x123), ("a", True, EXTENDED | 0x123),
        ("can0", False, REMOTE | 0x123), ("a-long-name-of-an-interface", False, 0x123),
    ]  # fmt: skip
    assert told == []


GOOD = "1.0,0x123,2,ABCD"


@pytest.mark.parametrize(
    "line",
    [
        "x,0x123,2,ABCD", "-1.0,0x123,2,ABCD", ",0x123,2,ABCD", "1.0,,2,ABCD", "1.0,0x3FFFFFFF,2,ABCD",
        "1.0,0x1G,2,ABCD", "1.0,0x123,3,ABCD", "1.0,0x123,2,ABC", "1.0,0x123,2,AB GD", "1.0,0x123,x,ABCD",
        "1.0,0x123,9,112233445566778899", "1.0,0x123", "1.0", "99999999999.0,0x123,2,ABCD", "nan,0x123,2,AB",
        "1e99,0x123,2,ABCD", "1.0,0x123,2,ABC DEF", "9223372036.9,0x123,2,ABCD", "1:2:3:4,0x123,2,ABCD",
        "2020-13-01 00:00:00,0x123,2,ABCD", "1.0,0x123,2,1x22",
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_counted_and_its_neighbours_stay(line: str, tmp_path: Path) -> None:
    rows, told = of(f"time_s,id,len,data\n{GOOD}\n{line}\n\r\n\n{GOOD}\n", tmp_path)
    assert rows == [(10**9, "can0", False, 0x123, 2, 0, False, b"\xab\xcd")] * 2
    assert told == [f"left out: 1 lines that are no CAN frame, such as {line!r}"]


def test_a_heading_once_more_is_no_wrong_line(tmp_path: Path) -> None:
    text = GVRET + "1000,0000021A,false,Rx,0,1,FE,00,00,00,00,00,00,00,\n"
    rows, told = of(text * 2, tmp_path)
    assert (len(rows), told) == (2, [])


UNITS = {
    ("1581670628161", "1581670628162"): (1_581_670_628_161_000_000, "ms"),
    ("1581670628161550", "1581670628161560"): (1_581_670_628_161_550_000, "us"),
    ("1581670628161550123", "1581670628161550124"): (1_581_670_628_161_550_123, "ns"),
    ("1581670628", "1581670628", "1581670629"): (1_581_670_628_000_000_000, "s"),
    ("1581670628161.5", "1581670628162.0"): (1_581_670_628_161_500_000, "ms"),
    ("1066064000", "1066064240"): (1_066_064_000_000, "us"),
    ("1200", "1201", "1205"): (1_200_000_000, "ms"),
    ("1200", "1450", "1700"): (1_200_000, "us"),
    ("12", "12.5"): (12_000_000_000, "s"),
}


@pytest.mark.parametrize("times", UNITS, ids=lambda times: times[0])
def test_the_unit_of_times_is_guessed_by_their_size_and_steps_and_told(
    times: tuple[str, ...], tmp_path: Path
) -> None:
    rows, told = of("Time,ID,Data\n" + "".join(f"{time},0x123,AB\n" for time in times), tmp_path)
    expected, unit = UNITS[times]
    assert (rows[0][0], len(rows)) == (expected, len(times))
    assert told == [
        f"note: 1 unit of times that the heading does not tell, as `time_ms` would: {unit} is taken"
    ]


def base64_rows() -> str:
    rows = [(1.5, 0x123, b"\1\2\3\4"), (1.25, 0x7FF, b""), (2.0, 0x1FFFFFFF, bytes(range(12)))]
    return "".join(
        f"{time!r},{number:#x},{int(number > 0x7FF)},0,0,{len(data)},{base64.b64encode(data).decode()}\n"
        for time, number, data in rows
    )


TABLES = {
    "python-can": PYTHON_CAN + base64_rows(),
    "css": css_rows(";"),
    "gvret": written(CSV, some(6, CSV)).decode(),
    "spaced": "time_s,id_hex,DLC,data\n1.0,123,2,AB CD\n2.0,124,1,FE\n3.0,125,0,\n",
    "codes": f"time_s,id_hex,DLC,data\n1.0,123,12,{bytes(24).hex()}\n2.0,124,9,{bytes(12).hex()}\n",
    "decimal": "time_s,id_hex,len,d0,d1\n1.0,123,2,171,205\n2.0,124,2,171,20\n",
    "data first": "data,time_s,id_hex\nABCD,1.0,123\nFE,2.25,125\n",
}


@pytest.mark.parametrize("key", TABLES)
def test_a_table_cut_at_any_byte_loses_at_most_its_last_line_and_invents_nothing(
    key: str, tmp_path: Path
) -> None:
    whole, path = TABLES[key].encode(), tmp_path / "x"
    frames, before = of(TABLES[key], tmp_path)[0], 0
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        path.write_bytes(whole[:cut])
        found = listed(read_back(path, CSV)[0])
        assert found == frames[: len(found)], cut
        assert len(found) >= max(before, whole[:cut].count(b"\n") - 1), cut
        before = len(found)
    assert before == len(frames) > 1


def test_a_last_line_without_an_end_counts_if_its_length_says_that_it_is_whole(tmp_path: Path) -> None:
    for key in ("python-can", "css", "spaced"):
        assert of(TABLES[key].rstrip("\n"), tmp_path)[0] == of(TABLES[key], tmp_path)[0]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    line = "1000,0000021A,false,Rx,0,1,FE,00,00,00,00,00,00,00,\n"
    rows, told = of(f"{GVRET}{line}{'1,' * 2_000_000}\n{line}", tmp_path)
    assert len(rows) == 2
    assert told[0].startswith("left out: 1 lines longer than 65536 bytes")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst"])
def test_there_and_back_by_the_suffix(suffix: str, tmp_path: Path) -> None:
    log, path = tmp_path / "x.log", tmp_path / f"x{suffix}"
    log.write_text("(1700000000.000001) can1 123#1122\n(1700000000.000002) can0 18FEF100#\n")
    for source, form, target in ((log, CSV, path), (path, BY_KEY["candump"], tmp_path / "again.log")):
        with frames_in(source) as found:
            assert exported(found, form, str(target)) == (2, 0)
            assert list(found.told.lines()) == []
    assert (tmp_path / "again.log").read_text() == log.read_text()


def test_what_savvycan_cannot_open_is_left_out_and_told(tmp_path: Path) -> None:
    lines = [
        "123##011",
        "123##1" + "22" * 12,
        "123#R4",
        "20000004#0000000000000000",
        "123#1122334455667788_9",
    ]
    text = "".join(f"(1700000000.{n:09}) can0 {line}\n" for n, line in enumerate(lines))
    (tmp_path / "x.log").write_text(text)
    with frames_in(tmp_path / "x.log") as found:
        assert exported(found, CSV, str(tmp_path / "x.csv")) == (1, 0)
        assert sorted(found.told.lines()) == [
            "left out: 1 error frames, which csv does not have",
            "left out: 1 remote frames, which csv does not have",
            "left out: 2 CAN FD frames, which csv does not have",
            "note: 1 length codes above 8, which csv does not have: 8 is written",
            "note: 1 times cut to 1,000 ns, the step of csv",
        ]
    row = "1700000000000000,00000123,false,Rx,0,8,11,22,33,44,55,66,77,88,\n"
    assert (tmp_path / "x.csv").read_text() == GVRET + row


def test_python_can_and_we_read_the_same_out_of_what_it_writes(tmp_path: Path) -> None:
    """And out of what we make of that: its own reader of logs says so."""
    frames = some(200, BY_KEY["candump"])
    keep = frames.chosen((~frames.is_fd) & (frames.marks == 0) & ~frames.is_error & ~frames.is_remote)
    path, log = tmp_path / "x.csv", tmp_path / "x.log"
    with can.CSVWriter(path) as writer:
        for ts_ns, _, _, number, _, _, _, data in listed(keep):
            assert isinstance(ts_ns, int)
            assert isinstance(number, int)
            assert isinstance(data, bytes)
            wide = bool(number & EXTENDED)
            when_s = ts_ns // 1000 / 1e6  # the float that is nearest
            writer.on_message_received(can.Message(when_s, number & 0x1FFFFFFF, wide, data=data))
    assert imported(path, tmp_path / "d", "car").told == []
    with frames_in(tmp_path / "d") as found:
        exported(found, BY_KEY["candump"], str(log))
    theirs = [one for kind in (can.CSVReader(path), can.CanutilsLogReader(log)) for one in kind]
    said = [
        (round(one.timestamp, 6), one.arbitration_id, one.is_extended_id, bytes(one.data)) for one in theirs
    ]
    assert said[: len(keep)] == said[len(keep) :]
    assert len(said) == 2 * len(keep)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_mark_of_the_encoding_costs_no_line(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pack(b"\xef\xbb\xbf" + GVRET.encode() + b"1000,0000021A,false,Rx,0,0,\n"))
    found, told, _ = read_back(tmp_path / "x", CSV)
    assert (len(listed(found)), told) == (1, [])


def test_a_table_of_many_blocks_is_the_same(tmp_path: Path) -> None:
    frames = some(40_000, CSV)
    file = io.BytesIO()
    output = CSV.output(file, {})
    output.add(frames)
    (tmp_path / "x.csv").write_bytes(file.getvalue())
    assert len(file.getvalue()) > 2 << 20
    found, told, _ = read_back(tmp_path / "x.csv", CSV)
    assert found is not None
    assert told == []
    assert np.array_equal(found.ts_ns, frames.ts_ns)
    assert np.array_equal(found.data, frames.data)
