"""MF4 as loggers write it: data of a length of their own, numbers of some bits, in both orders, cut off."""

from collections.abc import Callable, Sequence
from pathlib import Path
from struct import pack

import pytest

from bus.wire.identifier import EXTENDED
from capture.files import CaptureError
from capture.formats import mf4
from capture.formats.mdf_blocks import CHANNEL, GROUP, HEAD, ID_BYTES, MASTER, VLSD
from capture.formats.mf4_writer import Layout, block
from capture.formats.table import BY_KEY
from tests.capture.formats.field import listed, read_back

MF4 = BY_KEY["mf4"]
BEGAN_NS = 1_700_000_000 * 10**9
SENT = [(0.001 * n, 0x100 + n if n % 3 else 0x18FEF100 + n, bytes(range(n % 20))) for n in range(40)]
"""Frames: seconds, identifier and data, which are up to 19 bytes here and cut to lengths that there are."""
OPEN = 0x04


def channel(
    layout: Layout,
    then: int,
    name: str,
    place: tuple[int, int, int],
    kind: int = 0,
    form: int = 0,
    signal: int = 0,
) -> int:
    """Add a channel: `place` is its byte, bit and bits."""
    byte, bit, bits = place
    links = then, 0, layout.text(name), 0, 0, signal, 0, 0
    body = CHANNEL.pack(kind, int(kind == MASTER), form, bit, byte, bits, 0) + bytes(56)
    return layout.add("CN", links, body)


def described(layout: Layout, signal: int) -> int:
    """Add channels as CSS Electronics' loggers have them. Return the first one."""
    name = "CAN_DataFrame."
    first = channel(layout, 0, f"{name}DataBytes", (14, 0, 64), VLSD, 10, signal)
    first = channel(layout, first, f"{name}EDL", (13, 7, 1))
    first = channel(layout, first, f"{name}DLC", (13, 0, 4))
    first = channel(layout, first, f"{name}BusChannel", (12, 1, 3))
    first = channel(layout, first, f"{name}IDE", (8, 7, 1))
    first = channel(layout, first, f"{name}ID", (8, 0, 29), form=1)
    return channel(layout, first, "Timestamp", (0, 0, 64), MASTER, 4)


def code(size: int) -> int:
    return size if size <= 8 else 9 + (size - 9) // 4


def record(number: int, offset: int, bus: int | None = None) -> bytes:
    seconds, identifier, data = SENT[number]
    bus = 1 + number % 2 if bus is None else bus
    word = identifier | (EXTENDED if identifier > 0x7FF else 0)
    return (
        pack("<d", seconds)
        + pack(">I", word)
        + bytes([bus << 1, code(len(data)) | 0x80])
        + pack("<Q", offset)
    )


def value(number: int) -> bytes:
    data = SENT[number][2]
    return pack("<I", len(data)) + data


def file_of(
    layout: Layout,
    groups: int,
    data: int,
    id_bytes: int,
    flags: int = 0,
    began_ns: int = BEGAN_NS,
    then: int = 0,
) -> bytes:
    group = layout.add("DG", (then, groups, data, 0), bytes([id_bytes]) + bytes(7))
    identity = (b"UnFinMF " if flags else b"MDF     ") + b"4.11    ".ljust(52, b"\0") + pack("<HH", flags, 0)
    header = pack("<Q", began_ns) + bytes(24)
    return identity + block("HD", (group, 0, 0, 0, 0, 0), header) + bytes(layout.data)


def begun() -> Layout:
    return Layout(ID_BYTES + HEAD.size + 6 * 8 + 32)


EACH_ITS_OWN: Sequence[int | None] = (None,) * len(SENT)


def of_no_frames(layout: Layout, rows: bytes) -> int:
    """Add records of 8 bytes that are no frames of CAN. Return where their group is."""
    first = channel(layout, 0, "LIN_Frame.ID", (0, 0, 6))
    group = layout.add("CG", (0, first, 0, 0, 0, 0), GROUP.pack(3, len(rows) // 8, 2, 46, 8, 0))
    return layout.add("DG", (0, group, layout.add("DT", (), rows), 0), bytes(8))


def with_signal_data(
    began_ns: int = BEGAN_NS, buses: Sequence[int | None] = EACH_ITS_OWN, beside: bytes | None = None
) -> bytes:
    """Return a file with one sort of records, and their data in a block of their own in front of them.
    `beside`: records that are no frames of CAN."""
    layout, offsets, values = begun(), [], b""
    for number in range(len(SENT)):
        offsets.append(len(values))
        values += value(number)
    signal = layout.add("SD", (), values)
    first = described(layout, signal)
    group = layout.add("CG", (0, first, 0, 0, 0, 0), GROUP.pack(1, len(SENT), 2, 46, 22, 0))
    rows = b"".join(record(number, offset, buses[number]) for number, offset in enumerate(offsets))
    data = layout.add("DT", (), rows)
    then = 0 if beside is None else of_no_frames(layout, beside)
    return file_of(layout, group, data, 0, 0, began_ns, then)


def of_a_logger(buses: Sequence[int | None] = EACH_ITS_OWN) -> bytes:
    """Return a file that was not finished: records and their values in turns, in a block without a length."""
    layout = begun()
    values = layout.add("CG", (0, 0, 0, 0, 0, 0), GROUP.pack(2, 0, 1, 46, 0, 0))
    group = layout.add("CG", (values, described(layout, values), 0, 0, 0, 0), GROUP.pack(1, 0, 2, 46, 22, 0))
    file = file_of(layout, group, layout.end + 24 + 4 * 8 + 8, 1, OPEN)
    rows = b"".join(
        b"\1" + record(number, 0, bus) + b"\2" + value(number) for number, bus in enumerate(buses)
    )
    return file + HEAD.pack(b"##DT", HEAD.size, 0) + rows


def in_lists(layout: Layout, data: bytes, kind: str, is_headed: bool) -> int:
    """Add data as blocks of growing sizes, three of them in each of a chain of lists. Return its place."""
    blocks, at = list[int](), 0
    while at < len(data):
        size = 5 + 9 * len(blocks)
        blocks.append(layout.add(kind, (), data[at : at + size]))
        at += size
    then = 0
    for number in range((len(blocks) - 1) // 3 * 3, -1, -3):
        some = blocks[number : number + 3]
        then = layout.add("DL", (then, *some), pack("<B3xI", 0, len(some)) + bytes(8 * len(some)))
    return layout.add("HL", (then,), bytes(8)) if is_headed else then


def expected() -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number, (seconds, identifier, data) in enumerate(SENT):
        size = len(data) if len(data) <= 8 else 12 + (len(data) - 9) // 4 * 4
        word = identifier | (EXTENDED if identifier > 0x7FF else 0)
        place = BEGAN_NS + round(seconds * 1e9), f"can{number % 2}", False
        rows.append((*place, word, size, 0, True, data.ljust(size, b"\0")))
    return rows


@pytest.mark.parametrize("make", [with_signal_data, of_a_logger])
def test_frames_with_data_of_a_length_of_their_own_are_read(
    make: Callable[[], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "drive.mf4"
    path.write_bytes(make())
    found, told, _ = read_back(path, MF4)
    assert listed(found) == expected()
    assert told == []


@pytest.mark.parametrize("is_headed", [False, True], ids=["a list", "a list with a header"])
def test_data_in_lists_of_blocks_are_read_whatever_their_sizes_are(is_headed: bool, tmp_path: Path) -> None:
    layout, offsets, values = begun(), [], b""
    for number in range(len(SENT)):
        offsets.append(len(values))
        values += value(number)
    rows = b"".join(record(number, offset) for number, offset in enumerate(offsets))
    first = described(layout, in_lists(layout, values, "SD", is_headed))
    group = layout.add("CG", (0, first, 0, 0, 0, 0), GROUP.pack(1, len(SENT), 2, 46, 22, 0))
    path = tmp_path / "drive.mf4"
    path.write_bytes(file_of(layout, group, in_lists(layout, rows, "DT", is_headed), 0))
    found, told, _ = read_back(path, MF4)
    assert listed(found) == expected()
    assert told == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [(bytes(16), ["left out: 1 groups of channels that are no frames of CAN"]), (b"", [])],
    ids=["two records", "none"],
)
def test_a_group_of_other_channels_is_left_out_if_it_has_records(
    rows: bytes, said: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "drive.mf4"
    path.write_bytes(with_signal_data(beside=rows))
    found, told, _ = read_back(path, MF4)
    assert listed(found) == expected()
    assert told == said


def test_a_log_that_ends_anywhere_loses_its_last_frame_alone(tmp_path: Path) -> None:
    whole, path, before = of_a_logger(), tmp_path / "drive.mf4", 0
    for cut in range(0, len(whole), 3):
        path.write_bytes(whole[:cut])
        try:
            found, _, _ = read_back(path, MF4)
        except CaptureError:
            assert not before
            continue
        rows = listed(found)
        assert rows == expected()[: len(rows)]
        assert before <= len(rows)
        before = len(rows)
    assert before == len(SENT) - 1


def test_a_file_whose_description_is_cut_off_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "drive.mf4"
    whole = with_signal_data()
    path.write_bytes(whole[: whole.index(b"##CG")])
    with pytest.raises(
        CaptureError, match=r"drive\.mf4: MF4 that is cut off before what describes its frames"
    ):
        read_back(path, MF4)


def test_a_channel_has_one_name_in_a_whole_file_that_counts_from_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mf4, "_CHUNK", 8)
    path, buses = tmp_path / "x.mf4", [1] * 30 + [0, 1] * 5
    for whole in (with_signal_data(BEGAN_NS, buses), of_a_logger(buses)):
        path.write_bytes(whole)
        found, _, _ = read_back(path, MF4)
        assert [row[1] for row in listed(found)] == [f"can{bus}" for bus in buses]


def test_a_start_that_no_capture_can_hold_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.mf4"
    path.write_bytes(with_signal_data(1 << 63))
    with pytest.raises(CaptureError, match=r"x\.mf4: MF4 that began at a time that no capture can hold"):
        read_back(path, MF4)


def test_frames_beyond_the_last_time_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.mf4"
    path.write_bytes(with_signal_data((1 << 63) - 10_500_000))
    found, told, _ = read_back(path, MF4)
    assert len(listed(found)) == 11
    assert told == ["left out: 29 frames of a time that no capture can hold"]
