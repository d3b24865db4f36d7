"""Sets of numbers, against sets of Python."""

from itertools import pairwise
from random import Random

import pytest

from bus.journal.ranges import U64_MAX, RangeSet

MOST = 60


def numbers(ranges: RangeSet) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


@pytest.mark.parametrize("seed", range(30))
def test_a_range_set_says_what_a_set_says(seed: int) -> None:
    random, held, model = Random(seed), RangeSet(), set[int]()
    for _ in range(40):
        first = random.randrange(MOST)
        last = min(first + random.randrange(6), MOST)
        held.add(first, last)
        model.update(range(first, last + 1))
        assert numbers(held) == model
        assert held.count == len(model)
        assert held.last == max(model)
        parts = list(held)
        assert all(before + 1 < after for (_, before), (after, _) in pairwise(parts))
        low = random.randrange(MOST)
        high = random.randrange(MOST)
        wanted = set(range(low, high + 1)) - model
        assert numbers(RangeSet(held.missing(low, high))) == wanted
        assert held.count_missing(low, high) == len(wanted)
        assert held.covers(low, high) == (not wanted)
        assert held.first_missing(low) == next(n for n in range(low, MOST + 9) if n not in model)
        assert (low in held) == (low in model)
        first, last = held.range_of(low)
        assert first == held.begin_of(low)
        assert first == last == low or (set(range(first, last + 1)) <= model and first - 1 not in model)
    other = RangeSet(parts)
    assert other == held == held.copy()
    copied = held.copy()
    copied.add(1000, 1001)
    assert copied != held


def test_a_full_set_takes_only_what_joins_a_range() -> None:
    held = RangeSet([(1, 2), (5, 6)])
    assert not held.add(10, 10, most=2)
    assert held.add(7, 9, most=2)
    assert list(held) == [(1, 2), (5, 9)]


def test_the_smallest_gap_is_closed_first_and_of_equal_ones_the_lowest() -> None:
    held = RangeSet([(1, 2), (10, 11), (14, 15), (18, 18)])
    assert [held.close_smallest() for _ in range(3)] == [(12, 13), (16, 17), (3, 9)]
    assert list(held) == [(1, 18)]
    with pytest.raises(ValueError, match="empty"):
        held.close_smallest()


@pytest.mark.parametrize("pair", [(2, 1), (-1, 1), (0, U64_MAX + 1)])
def test_what_is_no_range_of_u64_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no range of u64"):
        RangeSet([pair])


def test_the_highest_numbers_are_numbers_too() -> None:
    held = RangeSet([(0, 0), (U64_MAX, U64_MAX)])
    held.add(1, U64_MAX - 1)
    assert list(held) == [(0, U64_MAX)]
    assert held.count == U64_MAX + 1
