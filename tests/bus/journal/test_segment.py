"""The records in a piece of a segment, by their numbers, and what is told by heads alone."""

import pytest

from bus.journal.ranges import RangeSet
from bus.journal.record import HEAD_BYTES, encode
from bus.journal.segment import Segment, parse, share, skim, torn_last
from bus.wire.batch import from_payloads

THREE = b"".join(one.encoded for one in encode(from_payloads([b"5", b"6", b"7"]).data, 5, 1000))
ONE = b"".join(one.encoded for one in encode(from_payloads([b"8"]).data, 8, 1000))


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1, 4, []), (1, 5, [(5, 5)]), (6, 6, [(6, 6)]), (7, 8, [(7, 7), (8, 8)]), (9, 9, [])],
)
def test_a_record_is_cut_to_the_numbers_that_are_asked_for(
    low: int, high: int, found: list[tuple[int, int]]
) -> None:
    data = THREE + ONE
    records = parse(data, low, high, len(data), len(data)).records
    assert [(one.number, one.last) for one in records] == found


@pytest.mark.parametrize(("low", "number"), [(5, 5), (7, 5), (8, 8), (99, 8)])
def test_the_last_record_before_a_number_is_found_by_heads(low: int, number: int) -> None:
    assert skim(THREE + ONE, low) == (len(THREE) if number == 8 else 0, number)


@pytest.mark.parametrize(("low", "last"), [(5, 7), (4, 3), (6, 5)])
def test_a_torn_record_has_the_numbers_of_its_head_if_it_goes_on_with_them(low: int, last: int) -> None:
    assert torn_last(THREE[:HEAD_BYTES], low) == last
    assert torn_last(THREE[: HEAD_BYTES - 1], low) == low - 1


@pytest.mark.parametrize(("first", "last", "size"), [(5, 5, 100), (5, 8, 75), (2, 4, 0), (5, 4, 0)])
def test_what_is_not_acknowledged_has_its_share_of_a_segment(first: int, last: int, size: int) -> None:
    assert share(Segment(first, last, 100, 0, 0), RangeSet([(2, 4), (8, 8)])) == size
