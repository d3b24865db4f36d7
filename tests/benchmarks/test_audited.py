"""When a trial of the audit finds it wrong: by what a listener heard."""

from collections import Counter

import pytest

from benchmarks.audited import judged

HEARD = Counter({str(number): 1 for number in range(95)})


@pytest.mark.parametrize(
    ("counts", "is_right"),
    [
        ({"lost": 5}, True),
        ({"lost": 2, "not captured": 40}, True),  # not known, and it may have been heard
        ({"lost": 6}, False),
        ({"lost": 4}, False),
        ({"lost": 5, "duplicate": 1}, False),
    ],
)
def test_an_audit_is_right_that_accuses_nobody_wrongly_and_misses_nothing(
    counts: dict[str, int], is_right: bool
) -> None:
    assert (judged(100, HEARD, set(), Counter(counts)) == []) == is_right


def test_a_double_that_the_listener_has_is_due() -> None:
    assert judged(100, HEARD + Counter(["7"]), set(), Counter({"lost": 5})) != []
    assert judged(100, HEARD + Counter(["7"]), set(), Counter({"lost": 5, "duplicate": 1})) == []


def test_what_the_bus_recorded_while_the_listener_was_away_is_not_missing() -> None:
    on_bus = {"7", "95", "96"}
    assert judged(100, HEARD, on_bus, Counter({"lost": 1, "not captured": 2})) == []
    assert judged(100, HEARD, on_bus, Counter({"lost": 4})) != []
