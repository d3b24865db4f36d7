import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import pack

FRAME = bytes.fromhex("02020005112233445566778868656c6c6f")
WIRE = bytes.fromhex("e108f011a1b2c3d400000007") + FRAME
frames = st.builds(
    pack, st.integers(0, 255), st.lists(st.integers(0, 0xFFFFFFFF), max_size=255), st.binary(max_size=2048)
)


def test_worked_example() -> None:
    assert wrap(FRAME, Envelope(0xA1B2C3D4, 7)) == WIRE
    assert split(WIRE) == (Envelope(0xA1B2C3D4, 7, 8), FRAME)


def test_a_plain_frame_has_no_envelope() -> None:
    assert split(FRAME) == (None, FRAME)
    magic = pack(0xE1, (), b"x")
    assert split(magic) == (None, magic)


@given(frames, st.integers(0, 15))
def test_round_trip_and_never_mistaken(frame: bytes, hops: int) -> None:
    assert split(frame) == (None, frame)
    assert split(wrap(frame, Envelope(1, 2, hops))) == (Envelope(1, 2, hops), frame)


@pytest.mark.parametrize("wire", [b"", WIRE[:-1], WIRE + b"x", WIRE[:12], bytes([0xE1, 0x18]) + WIRE[2:]])
def test_malformed_is_none(wire: bytes) -> None:
    assert split(wire) is None


@pytest.mark.parametrize("envelope", [Envelope(1 << 32, 0), Envelope(0, -1), Envelope(0, 0, 16)])
def test_fields_that_do_not_fit(envelope: Envelope) -> None:
    with pytest.raises(FrameError):
        wrap(FRAME, envelope)


@given(st.binary(max_size=40))
def test_any_bytes_never_raise(wire: bytes) -> None:
    split(wire)
