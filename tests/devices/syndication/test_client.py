"""Messages to a client are cut into pieces that fit a segment of TCP, and none into two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("msgpack")

from devices.syndication.client import SEGMENT_BYTES, Messages
from devices.syndication.wire.messages import Form, Publication

EMPTY = len(Publication("", {}, b"").packed(Form.TAGGED))


def of(*sizes: int) -> Messages:
    """Return publications that are packed in so many bytes."""
    return Messages(Publication("", {}, bytes(size - EMPTY)) for size in sizes)


def cut(*sizes: int) -> list[tuple[int, int]]:
    """Return the bytes and the messages of each piece."""
    return [(len(piece), count) for piece, count in of(*sizes).pieces()]


def test_a_segment_is_1400_bytes() -> None:
    assert SEGMENT_BYTES == 1400


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ((700, 700), [(1400, 2)]),
        ((700, 701), [(700, 1), (701, 1)]),
        ((700, 700, 700), [(1400, 2), (700, 1)]),
        ((1400, 100), [(1400, 1), (100, 1)]),
        ((1401,), [(1401, 1)]),
        ((2000, 1400), [(2000, 1), (1400, 1)]),
        ((100, 2000, 100, 100), [(100, 1), (2000, 1), (200, 2)]),
    ],
)
def test_a_piece_is_as_many_whole_messages_as_fit(
    sizes: tuple[int, ...], pieces: list[tuple[int, int]]
) -> None:
    assert cut(*sizes) == pieces


@given(st.lists(st.integers(EMPTY, 3000), min_size=1, max_size=9))
def test_no_two_pieces_in_a_row_fit_one_segment(sizes: list[int]) -> None:
    messages = of(*sizes)
    pieces = messages.pieces()
    assert b"".join(piece for piece, _ in pieces) == messages.packed(Form.TAGGED)
    assert sum(count for _, count in pieces) == len(sizes)
    assert all(len(piece) <= SEGMENT_BYTES or count == 1 for piece, count in pieces)


def test_pieces_are_cut_once() -> None:
    messages = of(1000, 1000)
    assert messages.pieces() is messages.pieces()


def test_what_fits_a_segment_is_packed_once() -> None:
    messages = of(700, 700)
    ((piece, _),) = messages.pieces()
    assert piece is messages.packed(Form.TAGGED)
