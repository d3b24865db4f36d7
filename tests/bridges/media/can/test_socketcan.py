import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.can.codec import can_id, segment
from bridges.media.can.socketcan import (
    ERROR,
    EXTENDED,
    FD,
    IDENTIFIER,
    KINDS,
    OWN,
    REMOTE,
    pack_frame,
    unpack_frame,
)
from tests.bridges.support import MESSAGE

ID = can_id(0x1234, 5)


def test_in_memory() -> None:
    """Section 8 of the wire format: identifier 10723405 is 05 34 72 90 in a little-endian memory."""
    first = segment(MESSAGE, 3)[0]
    assert pack_frame(ID, first).hex() == "05347290" + "08000000" + "e108f011a1b2c3a3"
    assert pack_frame(ID, b"\x01").hex() == "05347290" + "01000000" + "0100000000000000"
    (whole,) = segment(MESSAGE, 3, fd=True)
    assert pack_frame(ID, whole, True, True).hex() == "05347290" + "20010000" + whole.hex() + "00" * 32
    assert pack_frame(ID, whole, True).hex()[8:16] == "20000000"


@given(st.integers(0, 2**29 - 1), st.binary(max_size=64), st.booleans())
def test_round_trip(identifier: int, data: bytes, switch: bool) -> None:
    assert unpack_frame(pack_frame(identifier, data, True, switch), OWN) == (
        identifier | EXTENDED,
        data,
        FD | OWN,
    )
    classic = data[:8]
    assert unpack_frame(pack_frame(identifier, classic)) == (identifier | EXTENDED, classic, 0)


@pytest.mark.parametrize("size", [0, 8, 15, 17, 71, 73])
def test_no_frame(size: int) -> None:
    assert unpack_frame(bytes(size)) is None


def test_kinds_are_kept() -> None:
    for kind in (EXTENDED, REMOTE, ERROR, 0):
        raw = (kind | 0x123).to_bytes(4, "little") + b"\x02\0\0\0ab" + bytes(6)
        assert unpack_frame(raw) == (kind | 0x123, b"ab", 0)


def test_the_bits_are_those_of_this_system() -> None:
    assert (EXTENDED, REMOTE, ERROR) == (socket.CAN_EFF_FLAG, socket.CAN_RTR_FLAG, socket.CAN_ERR_FLAG)
    assert (KINDS, IDENTIFIER) == (7 << 29, socket.CAN_EFF_MASK)


def test_the_marks_of_a_frame_are_told_apart() -> None:
    classic, fd = unpack_frame(pack_frame(ID, b"ab"), OWN), unpack_frame(pack_frame(ID, b"ab", True))
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
    for fd, switch, data in ((False, False, b"12345678"), (True, True, bytes(64)), (True, False, b"abc")):
        built = can.build_can_frame(
            message(arbitration_id=ID, is_fd=fd, bitrate_switch=switch, data=data, is_extended_id=True)
        )
        ours = pack_frame(ID, data, fd, switch)
        assert len(built) == len(ours)
        assert unpack_frame(built) == unpack_frame(ours)
        assert built[:5] == ours[:5]
