import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.wire.frame import (
    BRIDGE,
    BROKER,
    CACHE,
    FRAME_BYTES_MAX,
    PUB,
    REMOVE,
    SUB,
    frame_bytes,
    is_frame,
    pack,
    unpack,
)

EXAMPLE = bytes.fromhex("02020005112233445566778868656c6c6f")
u32 = st.integers(0, 0xFFFFFFFF)


def test_worked_example() -> None:
    assert pack(2, (0x11223344, 0x55667788), b"hello") == EXAMPLE
    assert unpack(EXAMPLE) == (2, (0x11223344, 0x55667788), b"hello")


def test_types_are_bits() -> None:
    assert (PUB, SUB, CACHE, REMOVE, BROKER, BRIDGE) == (0x01, 0x02, 0x04, 0x08, 0x40, 0x80)


def test_fields_are_unsigned_and_reach_their_limits() -> None:
    frame = pack(BRIDGE, [0xFFFFFFFF] * 255, bytes(2048))
    assert len(frame) == FRAME_BYTES_MAX == 3072
    assert unpack(frame).type == BRIDGE
    assert len(unpack(frame).tokens) == 255


@given(st.integers(0, 255), st.lists(u32, max_size=255), st.binary(max_size=2048))
def test_round_trip(kind: int, tokens: list[int], data: bytes) -> None:
    assert unpack(pack(kind, tokens, data)) == (kind, tuple(tokens), data)


@pytest.mark.parametrize(
    ("kind", "tokens", "data", "text"),
    [
        (256, (), b"", "type 256"),
        (-1, (), b"", "type -1"),
        (1, [0] * 256, b"", "256 tokens"),
        (1, (), bytes(2049), "2049 data bytes"),
        (1, (1 << 32,), b"", "token 4294967296"),
        (1, ("fridge",), b"", "token 'fridge'"),
        (0, (0, 0xFFFFFFFF, -1), b"", "token -1"),
        (255, [0] * 254 + [1 << 32], bytes(2048), "token 4294967296"),
    ],
)
def test_every_limit_has_a_clear_error(kind: int, tokens: list[int], data: bytes, text: str) -> None:
    with pytest.raises(FrameError, match=text):
        pack(kind, tokens, data)


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (EXAMPLE[:3], "3 bytes"),
        (EXAMPLE[:-1], "announces 17"),
        (EXAMPLE + b"x", "announces 17"),
        (bytes.fromhex("01000801") + bytes(2049), "data length 2049"),
        (bytes.fromhex("01010000"), r"^4 bytes, but the header announces 8 \(1 tokens, 0 data bytes\)$"),
        (bytes.fromhex("01000800"), "^4 bytes, but the header announces 2052"),
    ],
)
def test_what_is_not_a_frame_says_why(wire: bytes, text: str) -> None:
    assert not is_frame(wire)
    with pytest.raises(FrameError, match=text):
        unpack(wire)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_frame_or_refused(wire: bytes) -> None:
    if is_frame(wire):
        assert pack(*unpack(wire)) == wire
    else:
        with pytest.raises(FrameError):
            unpack(wire)


def test_announced_length_of_an_incomplete_or_illegal_header_is_zero() -> None:
    assert frame_bytes(EXAMPLE[:3]) == 0
    assert frame_bytes(EXAMPLE, len(EXAMPLE) - 3) == 0
    assert frame_bytes(bytes.fromhex("01000801")) == 0
    assert frame_bytes(bytes.fromhex("01000800")) == 2052
    assert not is_frame(b"")
    assert frame_bytes(EXAMPLE[:4]) == len(EXAMPLE)
