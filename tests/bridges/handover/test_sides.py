"""Sides of a bridge by their numbers, also after a reload."""

import pytest

from bridges.handover.sides import moved, moved_all, placed


@pytest.mark.parametrize(("side", "new"), [(0, 1), (1, -1), (2, 0), (-1, -1)])
def test_a_side_has_its_new_number_or_none(side: int, new: int) -> None:
    places = (1, None, 0)
    assert placed(side, places) == new
    assert moved_all({(max(side, 0), b"x"): 7}, places) == (
        {(placed(max(side, 0), places), b"x"): 7} if side != 1 else {}
    )


def test_bits_of_sides_are_bits_of_their_new_numbers() -> None:
    assert moved(0b111, (1, None, 0)) == 0b11
    assert moved(0b001, (1, None, 0)) == 0b10
    assert moved(0b110, (1, None, 0)) == 0b01
