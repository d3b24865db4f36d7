import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.wire.envelope import (
    FLAG_FRAGMENT,
    MESSAGE_BYTES_MAX,
    Envelope,
    Parts,
    is_enveloped,
    message_bytes,
    split,
    take_apart,
    wrap,
)
from bus.wire.frame import pack

FRAME = bytes.fromhex("02020005112233445566778868656c6c6f")
WIRE = bytes.fromhex("e108f011a1b2c3d400000007") + FRAME
HELLO = bytes.fromhex("e108f000a1b2c3d400000008") + b"hello"
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


def test_an_opaque_message_has_an_envelope_with_the_length_0() -> None:
    assert wrap(b"hello", Envelope(0xA1B2C3D4, 8)) == HELLO
    assert take_apart(HELLO) == Parts(Envelope(0xA1B2C3D4, 8), b"hello", False)
    assert split(HELLO) is None
    assert is_enveloped(HELLO)
    assert message_bytes(HELLO) == 0  # its header does not say where it ends


@given(st.binary(max_size=80) | st.just(bytes(1 << 20)), st.integers(0, 15))
def test_every_message_comes_out_as_it_went_in(content: bytes, hops: int) -> None:
    envelope = Envelope(1, 2, hops)
    assert take_apart(wrap(content, envelope))[:2] == (envelope, content)


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"hello",
        HELLO[:11],
        HELLO[:12] + FRAME,  # a frame is never called opaque
        HELLO[:1] + b"\x18" + HELLO[2:],  # flags
        HELLO[:3] + b"\x05" + HELLO[4:],  # a length that only a frame may have
        WIRE[:-1],
    ],
)
def test_what_only_looks_like_an_envelope_is_part_of_the_message(wire: bytes) -> None:
    assert take_apart(wire) == Parts(None, wire, False)


@pytest.mark.parametrize(
    "envelope",
    [
        Envelope(1 << 32, 0),
        Envelope(-1, 0),
        Envelope(0, 1 << 32),
        Envelope(0, -1),
        Envelope(0, 0, 16),
        Envelope(0, 0, -1),
        Envelope(0, 0, 0, 16),
        Envelope(0, 0, 0, -1),
    ],
)
def test_fields_that_do_not_fit(envelope: Envelope) -> None:
    with pytest.raises(FrameError):
        wrap(FRAME, envelope)


@pytest.mark.parametrize(
    ("envelope", "head"),
    [
        (Envelope(0, 0, 0), "e100f000" + "00" * 8),
        (Envelope(0xFFFFFFFF, 0xFFFFFFFF, 15, 15), "e1fff000" + "ff" * 8),
        (Envelope(1, 2, 3, FLAG_FRAGMENT), "e183f000" + "0000000100000002"),
    ],
)
def test_fields_that_just_fit(envelope: Envelope, head: str) -> None:
    wire = wrap(b"hello", envelope)
    assert wire == bytes.fromhex(head) + b"hello"
    assert (take_apart(wire).envelope == envelope) == (envelope.flags == 0)


def test_a_message_is_told_by_its_origin_and_sequence() -> None:
    assert Envelope(1, 2, 3).key == Envelope(1, 2, 4).key == 0x1_0000_0002
    assert Envelope(0xFFFFFFFF, 0xFFFFFFFF).key == (1 << 64) - 1


@given(st.binary(max_size=40))
def test_any_bytes_never_raise(wire: bytes) -> None:
    split(wire)
    for started in (wire, b"\xe1\x08\xf0\x00" + wire, b"\xe1\x08\xf0" + wire):
        envelope, content, _ = take_apart(started)
        assert started in (content, envelope and wrap(content, envelope))


def test_a_message_in_a_buffer_ends_where_it_is_said_to() -> None:
    data = b"junk" + WIRE + FRAME
    assert is_enveloped(data, 4, 4 + len(WIRE))
    assert not is_enveloped(data, 4, 4 + 11)
    assert not is_enveloped(data, 4 + len(WIRE))
    assert message_bytes(data, 4, 4 + len(WIRE)) == message_bytes(data, 4) == len(WIRE)
    assert message_bytes(data, 4, 3 + len(WIRE)) == 0
    assert message_bytes(data, 4 + len(WIRE)) == len(FRAME)
    assert message_bytes(FRAME, 0, len(FRAME)) == len(FRAME)
    assert message_bytes(FRAME, 0, len(FRAME) - 1) == message_bytes(FRAME[:3]) == message_bytes(b"") == 0
    assert message_bytes(FRAME) == len(FRAME)
    assert message_bytes(bytes(20) + WIRE[:1], 20) == 0
    assert message_bytes(WIRE[:12]) == message_bytes(WIRE[:13]) == 0


def test_the_longest_message_is_the_longest_frame_in_its_envelope() -> None:
    longest = wrap(pack(1, [7] * 255, bytes(2048)), Envelope(1, 2))
    assert len(longest) == message_bytes(longest + b"junk") == MESSAGE_BYTES_MAX == 3084
