"""Values that go into a journal in fewer groups, and numbers that no record has."""

import pytest

from bus.journal.groups import Group, between, encoded, joined
from bus.journal.ranges import Range
from bus.journal.record import encode
from bus.wire.batch import from_payloads

ONE, TWO = from_payloads([b"1"]).data, from_payloads([b"2", b"3"]).data
RECORDS = [*encode(TWO, 3, 1000), *encode(ONE, 8, 1000)]


@pytest.mark.parametrize(
    ("number", "following", "missing"),
    [
        (1, 12, [(1, 2), (5, 7), (9, 11)]),
        (3, 9, [(5, 7)]),
        (2, 10, [(2, 2), (5, 7), (9, 9)]),
    ],
)
def test_numbers_that_are_in_no_record_are_told(number: int, following: int, missing: list[Range]) -> None:
    assert between(number, RECORDS, following) == missing


def test_without_records_all_numbers_are_missing() -> None:
    assert between(4, [], 6) == [(4, 5)]
    assert between(4, [], 4) == []


def test_what_begins_here_at_one_time_for_the_same_ends_is_one_group() -> None:
    groups = [
        Group(ONE, 5), Group(TWO, 5), Group(ONE, 6), Group(ONE, 6, ends=1), Group(ONE, 6, origin=(7, 1)),
        Group(ONE, 6, origin=(7, 1)),
    ]  # fmt: skip
    made = joined(groups)
    assert [len(one.data) for one in made] == [len(ONE) + len(TWO), *[len(ONE)] * 4]
    assert [one.number for one in encoded(groups, 10)] == [10, 13, 14, 15, 16]
