"""Frames in the driver: what leaves with which confirmation, and how many may be there."""

import random

import pytest

from bridges.items import FD, OWN, CanFrame
from bridges.media.can.flight import Flight
from bridges.media.can.socketcan import pack_rows
from bridges.media.can.window import LEAST, Window
from bridges.packed import STRIDE, Packed

FRAMES: tuple[CanFrame, ...] = ((1, b"a", 0), (1, b"b", 0), (2, b"a", 0), (1, b"a", 0))


def flying() -> Flight:
    flight = Flight()
    flight.add(FRAMES, (0, 5, 6, 7))
    return flight


@pytest.mark.parametrize(
    ("confirmed", "sizes", "left"),
    [
        ((0,), [], 3),
        ((0, 1, 2, 3), [5, 6, 7], 0),
        ((1,), [5], 2),  # and the one before it
        ((2, 3), [5, 6, 7], 0),
        ((0, 3), [5, 6, 7], 0),
    ],
)
def test_a_confirmed_frame_takes_those_before_it_along(
    confirmed: tuple[int, ...], sizes: list[int], left: int
) -> None:
    flight = flying()
    assert flight.confirm([(*FRAMES[n][:2], OWN) for n in confirmed]) == sizes
    assert len(flight) == left


def test_an_unknown_frame_confirms_nothing() -> None:
    flight = flying()
    assert flight.confirm([(9, b"a", OWN)]) is None
    assert flight.confirm([(9, b"a", OWN), (1, b"b", OWN)]) == [5]
    assert flight.confirm([(2, b"a", 0), (1, b"a", 0), (1, b"a", 0)]) == [6, 7]
    assert flight.confirm([(1, b"a", OWN)]) is None
    assert flight.clear() == ([], [])


def test_what_is_forgotten_is_told() -> None:
    flight = flying()
    flight.confirm([FRAMES[0]])
    assert flight.clear() == (list(FRAMES[1:]), [5, 6, 7])
    assert not len(flight)


@pytest.mark.parametrize("seed", range(5))
def test_many_confirmations_are_as_one_after_the_other(seed: int) -> None:
    chance = random.Random(seed)
    sent = [(chance.randrange(3), chance.randbytes(1), 0) for _ in range(60)]
    sizes = [chance.randrange(2) for _ in sent]
    at_once, each = Flight(), Flight()
    for flight in (at_once, each):
        flight.add(sent, sizes)
    echoes = [frame for frame in sent if chance.random() < 0.9]
    left = [size for echo in echoes for size in each.confirm([echo]) or []]
    assert (at_once.confirm(echoes), len(at_once)) == (left, len(each))


def carried(window: Window, rate: float, seconds: float = 0.1, look_s: float = 0.002) -> int:
    window.begin(0)
    for look in range(1, round(seconds / look_s)):
        window.confirm(look * look_s, min(window.most, round(rate * look_s)))
    return window.most


def test_a_driver_may_have_what_the_bus_carries_in_a_span() -> None:
    window = Window(0.004)
    assert window.most == LEAST
    assert carried(window, 500) == LEAST
    assert carried(window, 5_000) == 20
    assert carried(window, 18_000) == 72
    assert carried(window, 1e6) == 80
    assert carried(window, 2_000) == LEAST


def test_a_driver_that_refuses_has_no_more_than_that() -> None:
    window = Window(0.004)
    window.refuse(30)
    assert carried(window, 18_000) == 30
    window.refuse(2)
    assert carried(window, 18_000) == LEAST


def test_a_bound_that_was_asked_for_stays() -> None:
    window = Window(0, 4)
    assert carried(window, 18_000) == 4
    window.refuse(1)
    assert window.most == 4


@pytest.mark.parametrize("fd", [0, FD])
def test_packed_frames_are_confirmed_whatever_else_lies_in_their_rows(fd: int) -> None:
    sent = [(number, bytes((number,)), fd) for number in range(8)]
    rows, sizes = pack_rows(sent)
    flight, dirty = Flight(), bytearray(rows)
    dirty[5::STRIDE] = b"\x04" * 8  # flags of CAN FD, of which newer kernels set one
    if not fd:
        dirty[16::STRIDE] = b"\xaa" * 8
    flight.add(Packed(rows, sizes[0]), range(8))
    assert flight.confirm(Packed(rows, sizes[0], (OWN,) * 8).first(2)) == [1]
    assert flight.confirm(Packed(bytes(dirty[2 * STRIDE :]), sizes[0]).first(3)) == [2, 3, 4]
    assert flight.confirm(Packed(bytes(dirty[6 * STRIDE :]), sizes[0])) == [5, 6, 7]  # and one before them
    assert flight.clear() == ([], [])
