import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.wire.envelope import ENVELOPE_BYTES, FLAG_FRAGMENT, Envelope, first_sequence, take_apart, wrap
from bus.wire.frame import pack
from bus.wire.signed import is_hello
from bus.wire.timed import (
    SAME_MS,
    TAKES_TIME,
    TIMED_BYTES,
    Agreement,
    Timed,
    age_ms,
    is_same,
    offer,
    offered,
    take_apart_timed,
    time_ms_at,
    untimed,
    wrap_timed,
)

FRAME = bytes.fromhex("02020005112233445566778868656c6c6f")
WIRE = bytes.fromhex("e148f011a1b2c3d40000000710bc1d80") + FRAME
HELLO = bytes.fromhex("e148f000a1b2c3d40000000810bc1d80") + b"hello"
U32 = st.integers(0, 0xFFFFFFFF)
ENVELOPES = st.builds(Envelope, U32, U32, st.integers(0, 15), st.just(0))
CONTENTS = st.binary(max_size=80) | st.builds(
    pack, st.integers(0, 255), st.lists(U32, max_size=4), st.binary()
)


def test_worked_examples() -> None:
    assert wrap_timed(FRAME, Envelope(0xA1B2C3D4, 7), 0x10BC1D80) == WIRE
    assert take_apart_timed(WIRE) == Timed(Envelope(0xA1B2C3D4, 7), 0x10BC1D80, FRAME, True)
    assert wrap_timed(b"hello", Envelope(0xA1B2C3D4, 8), 0x10BC1D80) == HELLO
    assert take_apart_timed(HELLO) == Timed(Envelope(0xA1B2C3D4, 8), 0x10BC1D80, b"hello", False)
    assert offer() == bytes.fromhex("e140f0000000000000000001")


@given(CONTENTS, ENVELOPES, U32)
def test_what_goes_in_comes_out_and_is_an_old_message_without_its_time(
    content: bytes, envelope: Envelope, time_ms: int
) -> None:
    wire = wrap_timed(content, envelope, time_ms)
    assert len(wire) == TIMED_BYTES + len(content)
    found = take_apart_timed(wire)
    assert found is not None
    assert found[:3] == (envelope, time_ms, content)
    assert untimed(wire) == wrap(content, envelope)
    assert take_apart(wire).envelope is None  # an older appliance on a trunk says `malformed`


@given(st.binary(max_size=40))
def test_any_bytes_never_raise_and_only_one_kind_claims_them(data: bytes) -> None:
    for wire in (data, b"\xe1\x48\xf0\x00" + data, b"\xe1\x40\xf0\x00" + bytes(4) + data):
        found = take_apart_timed(wire)
        assert found is None or wrap_timed(found.content, found.envelope, found.time_ms) == wire
        assert (found is not None) + (take_apart(wire).envelope is not None) + (
            offered(wire) is not None
        ) <= 1


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        WIRE[:15],
        WIRE[:-1],
        WIRE + b"x",
        HELLO[:16] + FRAME,  # a frame is never called opaque
        WIRE[:1] + b"\x08" + WIRE[2:],  # without the flag
        WIRE[:1] + b"\xc8" + WIRE[2:],  # with one that nobody knows beside it
        wrap(FRAME, Envelope(1, 2)),
        FRAME,
        offer(),
    ],
)
def test_what_is_no_message_with_a_time(wire: bytes) -> None:
    assert take_apart_timed(wire) is None
    assert untimed(wire) == wire


@pytest.mark.parametrize(
    ("envelope", "time_ms"),
    [
        (Envelope(1, 2, 3, FLAG_FRAGMENT), 0),
        (Envelope(1, 2), -1),
        (Envelope(1, 2), 1 << 32),
        (Envelope(-1, 2), 0),
    ],
)
def test_fields_that_do_not_fit(envelope: Envelope, time_ms: int) -> None:
    with pytest.raises(FrameError):
        wrap_timed(FRAME, envelope, time_ms)


@given(st.integers(0, 1 << 42), st.integers(-(1 << 31), (1 << 31) - 1))
def test_an_age_is_right_for_24_days_each_way(now_ms: int, age: int) -> None:
    assert age_ms(now_ms - age & 0xFFFFFFFF, now_ms & 0xFFFFFFFF) == age


def test_a_time_is_in_milliseconds_and_comes_back_after_49_days() -> None:
    assert time_ms_at(1_764_000_000.1239) == 1_764_000_000_123 & 0xFFFFFFFF
    assert time_ms_at((1 << 32) / 1000 + 5) == 5000


def test_copies_are_the_same_message_and_a_number_that_comes_back_is_another() -> None:
    """Candidates whose clocks differ by some seconds stamp alike; a number is free again after 20 s."""
    at = 0xFFFFFF00
    assert is_same(7, at, 7, at + SAME_MS & 0xFFFFFFFF)
    assert is_same(7, at + 9000 & 0xFFFFFFFF, 7, at)
    assert not is_same(7, at, 8, at)
    assert not is_same(7, at, 7, at + 2 * SAME_MS & 0xFFFFFFFF)
    assert not is_same(7, at, 7, at - 3_600_000)  # caught up after an hour


@pytest.mark.parametrize(("pace", "down_s"), [(0, 0.001), (1000, 0.5), (999_999, 0.000001), (900_000, 3600)])
def test_the_numbers_of_a_restart_follow_those_of_the_run_before_it(pace: int, down_s: float) -> None:
    start_s, ran_s = 1_764_000_000.0, 40
    last = first_sequence(start_s) + pace * ran_s
    ahead = (first_sequence(start_s + ran_s + down_s) - last) & 0xFFFFFFFF
    assert 0 < ahead < 1 << 32 >> (down_s < 1000)


def exchange(one: Agreement, other: Agreement, lost: bool = False) -> list[bytes]:
    """Let two ends say what they must; return all that was said."""
    said = [(other, one.begin()), (one, other.begin())]
    told = list[bytes]()
    while said:
        to, message = said.pop(0)
        if message is not None:
            told.append(message)
            said.append((one if to is other else other, to.hear(message)[1]))
    return told


@pytest.mark.parametrize("wants", [(True, True), (True, False), (False, True)])
def test_two_ends_agree_whoever_begins_and_each_offers_once(wants: tuple[bool, bool]) -> None:
    one, other = map(Agreement, wants)
    assert exchange(one, other) == [offer(), offer()]
    assert one.leaving(WIRE) == other.leaving(WIRE) == WIRE


def test_ends_that_want_nothing_say_nothing() -> None:
    one, other = Agreement(False), Agreement(False)
    assert exchange(one, other) == []
    assert one.leaving(WIRE) == wrap(FRAME, Envelope(0xA1B2C3D4, 7))


def test_an_end_that_was_not_answered_sends_no_time() -> None:
    new = Agreement(True)
    assert new.begin() == offer()
    for answer in (FRAME, wrap(FRAME, Envelope(1, 2)), WIRE, b""):
        assert new.hear(answer) == (False, None)
    assert take_apart(new.leaving(WIRE)) == (Envelope(0xA1B2C3D4, 7), FRAME, True)


def test_what_a_later_end_takes_beside_times_is_no_trouble_and_nothing_else_means_time() -> None:
    end = Agreement(False)
    assert end.hear(offer(0xFFFFFFFE)) == (True, offer())
    assert end.leaving(WIRE) != WIRE
    assert end.hear(offer(0x80000000 | TAKES_TIME)) == (True, None)
    assert end.leaving(WIRE) == WIRE


def test_an_offer_is_neither_a_frame_nor_a_hello_of_keys() -> None:
    assert take_apart(offer()) == (None, offer(), False)
    assert not is_hello(offer())
    assert len(offer()) == ENVELOPE_BYTES
