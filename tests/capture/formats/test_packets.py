"""Packets of SocketCAN as tools of the field write them: bytes that nobody set, identifiers turned."""

from pathlib import Path
from struct import pack

import numpy as np
import pytest

from bus.wire.identifier import EXTENDED, REMOTE
from capture.formats.packets import CAN, SLL
from capture.formats.source import PIECE_BYTES
from capture.formats.table import BY_KEY
from tests.capture.formats.field import listed, read_back, some, written

Row = tuple[int, int, int, bool, bytes]


def read(path: Path, packets: list[bytes], link_type: int = CAN) -> tuple[list[Row], list[str]]:
    """Return identifier, length, marks, kind and data of the frames in a pcap of these packets, and what is
    told of it."""
    head = b"\xd4\xc3\xb2\xa1" + pack("<HHiIII", 2, 4, 0, 0, 65_535, link_type)
    path.write_bytes(head + b"".join(pack("<4I", 1, 0, len(one), len(one)) + one for one in packets))
    found, told, _ = read_back(path, BY_KEY["pcap"])
    return [row[3:] for row in listed(found)], told  # type: ignore[misc]


@pytest.mark.parametrize("cooked", [b"", pack(">HHH8sH", 0, 280, 0, bytes(8), 0x0C)])
def test_bytes_that_nobody_set_make_no_fd_frame_of_a_classic_one(cooked: bytes, tmp_path: Path) -> None:
    order = "<I" if cooked else ">I"
    unset = ("2e9204", "7e9204", "040100", "f40000", "10000c", "000109")
    packets = [cooked + pack(order, 0x123) + b"\x08" + bytes.fromhex(one) + bytes(8) for one in unset]
    set_ = cooked + pack(order, 0x123) + bytes.fromhex("0805000011223344aabbccdd")
    long = cooked + pack(order, 0x123) + bytes.fromhex("0c00930411223344aabbccdd") + bytes(4)
    rows, told = read(tmp_path / "x", [*packets, set_, long], SLL if cooked else CAN)
    assert [row[1:4] for row in rows] == [(8, 0, False)] * len(unset) + [(8, 1, True), (12, 0, True)]
    assert told == []


@pytest.mark.parametrize("identifier", [0x7E8, 0x123, 0x7DF, 0x250, 0x001, 0x7A0, 0x18DAF110 | EXTENDED])
def test_identifiers_in_the_order_of_a_machine_are_known_and_told(identifier: int, tmp_path: Path) -> None:
    behind = b"\x03\0\0\0\x02\x01\x0c"
    sure, one = pack("<I", 0x1A3) + behind, pack("<I", identifier) + behind
    plain = pack("<I", 0x181) + behind  # which may be an extended one in either order
    rows, told = read(tmp_path / "x", [plain, one, sure])
    assert [row[0] for row in rows] == [0x181, identifier, 0x1A3]
    assert [line[:43] for line in told] == ["note: 3 CAN frames whose identifiers are in"]


def test_an_order_that_was_seen_is_that_of_all_later_frames(tmp_path: Path) -> None:
    behind = b"\x08\0\0\0" + bytes(range(8))
    first, later = (pack("<I", identifier) + behind for identifier in (0x123, 0x181))
    count = 2 * PIECE_BYTES // 32  # so that a piece has none but these
    rows, told = read(tmp_path / "x", [first] + [later] * count)
    assert {row[0] for row in rows[1:]} == {0x181}
    assert len(told) == 1


def test_one_frame_that_is_none_turns_no_other(tmp_path: Path) -> None:
    behind = b"\x03\0\0\0\x02\x01\x0c"
    wrong, good, remote = (pack(">I", word) + behind for word in (0x12300, 0x123, 0x123 | REMOTE))
    rows, told = read(tmp_path / "x", [good, wrong, good, remote])
    assert [row[0] for row in rows] == [0x123, 0x123, 0x123 | REMOTE]
    assert told == ["left out: 1 standard frames whose identifiers have more than 11 bits"]


@pytest.mark.parametrize("key", ["pcap", "can-pcapng"])
def test_frames_of_all_sorts_in_the_right_order_are_never_turned(key: str, tmp_path: Path) -> None:
    form = BY_KEY[key]
    for seed in range(20):
        frames = some(5, form, seed)
        (tmp_path / "x").write_bytes(written(form, frames))
        found, told, _ = read_back(tmp_path / "x", form)
        assert listed(found) == listed(frames)
        assert told == []
        assert found is not None
        assert np.array_equal(found.ids, frames.ids)
