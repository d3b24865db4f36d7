"""Frames in the layout of the kernel: identifier, flags, length and data, packed and unpacked exactly."""

import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, KINDS, OWN, REMOTE, STATE, SWITCH, CanFrame
from bridges.media.can.codec import can_id, segment
from bridges.media.can.python_can import frame_of, message_of
from bridges.media.can.socketcan import pack_frame, pack_rows, unpack_frame, unpack_frames
from tests.bridges.support import MESSAGE

ID = EXTENDED | can_id(0x1234, 5)


def test_in_memory() -> None:
    """Section 8 of the wire format: identifier 10723405 is 05 34 72 90 in a little-endian memory."""
    first = segment(MESSAGE, 3)[0]
    assert pack_frame((ID, first, 0)).hex() == "05347290" + "08000000" + "e108f011a1b2c3a3"
    assert pack_frame((ID, b"\x01", 0)).hex() == "05347290" + "01000000" + "0100000000000000"
    (whole,) = segment(MESSAGE, 3, fd=True)
    assert pack_frame((ID, whole, FD | SWITCH)).hex() == "05347290" + "20010000" + whole.hex() + "00" * 32
    assert pack_frame((ID, whole, FD)).hex()[8:16] == "20000000"
    assert pack_frame((ID, whole, FD | STATE)).hex()[8:16] == "20020000"
    assert pack_frame((0x123, b"", FD | STATE | SWITCH)).hex()[:16] == "23010000" + "00030000"


@given(st.integers(0, 2**32 - 1), st.binary(max_size=64), st.booleans(), st.booleans())
def test_round_trip(identifier: int, data: bytes, switch: bool, state: bool) -> None:
    marks = FD | (SWITCH if switch else 0) | (STATE if state else 0)
    assert unpack_frame(pack_frame((identifier, data, marks)), OWN) == (identifier, data, marks | OWN)
    classic = data[:8]
    assert unpack_frame(pack_frame((identifier, classic, 0))) == (identifier, classic, 0)


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.binary(max_size=8))
@example(ID, 9, bytes(8))
@example(ID, 15, bytes(8))
@example(ID, 15, bytes(7))
def test_a_length_code_is_kept_only_where_it_is_one(identifier: int, code: int, data: bytes) -> None:
    raw = bytearray(pack_frame((identifier, data, 0)))
    raw[7] = code  # len8_dlc
    kept = code << 4 if len(data) == 8 and 9 <= code <= 15 else 0
    found = unpack_frame(bytes(raw), OWN)
    assert found == (identifier, data, kept | OWN)
    assert pack_frame(found)[7] == kept >> 4


def test_the_mark_of_newer_kernels_for_fd_changes_nothing() -> None:
    raw = bytearray(pack_frame((ID, b"ab", FD | SWITCH)))
    raw[5] |= 0x04  # CANFD_FDF
    assert unpack_frame(bytes(raw)) == (ID, b"ab", FD | SWITCH)


@pytest.mark.parametrize("size", [0, 8, 15, 17, 71, 73])
def test_no_frame(size: int) -> None:
    assert unpack_frame(bytes(size)) is None


CLASSIC, LONG = (ID, b"12345678", 15 << 4), (ID, bytes(48), FD | SWITCH)


@pytest.mark.parametrize(
    "frames", [[], [CLASSIC], [CLASSIC, CLASSIC], [LONG, LONG], [CLASSIC, LONG, CLASSIC]]
)
def test_frames_that_are_read_together_are_those_that_were_written(frames: list[CanFrame]) -> None:
    data, sizes = pack_rows(frames)
    found = unpack_frames(data, sizes, [OWN] * len(frames))
    assert list(found) == [(identifier, data, marks | OWN) for identifier, data, marks in frames]


def test_kinds_are_kept() -> None:
    for kind in (EXTENDED, REMOTE, ERROR, 0):
        raw = (kind | 0x123).to_bytes(4, "little") + b"\x02\0\0\0ab" + bytes(6)
        assert unpack_frame(raw) == (kind | 0x123, b"ab", 0)


def test_the_bits_are_those_of_this_system() -> None:
    assert (EXTENDED, REMOTE, ERROR) == (socket.CAN_EFF_FLAG, socket.CAN_RTR_FLAG, socket.CAN_ERR_FLAG)
    assert (KINDS, IDENTIFIER) == (7 << 29, socket.CAN_EFF_MASK)


def test_the_marks_of_a_frame_are_told_apart() -> None:
    classic, fd = unpack_frame(pack_frame((ID, b"ab", 0)), OWN), unpack_frame(pack_frame((ID, b"ab", FD)))
    assert classic is not None
    assert fd is not None
    assert (bool(classic[2] & FD), bool(classic[2] & OWN)) == (False, True)
    assert (bool(fd[2] & FD), bool(fd[2] & OWN)) == (True, False)


@given(st.binary(max_size=80))
def test_noise_never_raises(raw: bytes) -> None:
    unpack_frame(raw)


def test_as_python_can_has_it() -> None:
    """Compared with python-can's own layout."""
    can = pytest.importorskip("can.interfaces.socketcan.socketcan")
    message = pytest.importorskip("can").Message
    for marks, data in ((0, b"12345678"), (FD | SWITCH, bytes(64)), (FD, b"abc"), (FD | STATE, b"")):
        built = can.build_can_frame(message_of((ID, data, marks), message))
        ours = pack_frame((ID, data, marks))
        assert len(built) == len(ours)
        assert unpack_frame(built) == unpack_frame(ours)
        assert built[:5] == ours[:5]


@pytest.mark.parametrize(
    "frame",
    [
        (ID, b"12345678", 0),
        (0x123, b"", 0),
        (REMOTE | 0x123, bytes(3), 0),
        (REMOTE | ID, bytes(8), 0),
        (ID, bytes(48), FD | SWITCH | STATE),
        (0x7FF, b"a", FD),
    ],
)
def test_a_message_of_python_can_is_the_same_frame(frame: tuple[int, bytes, int]) -> None:
    assert frame_of(message_of(frame, pytest.importorskip("can").Message)) == frame
