"""States of alarms as gateways merge them, and as anybody may have written them."""

from typing import Any

import pytest

from appliance.alarms.states import NUMBER_MAX, State, merged, state_of

MINE = State(3, "raised", "bus p", 5, "up", "gw-a", frozenset({"a", "b"}), frozenset({"c", "d"}))


def test_of_one_state_all_outlets_that_told_or_gave_up_are_known() -> None:
    other = MINE._replace(told=frozenset({"c"}), failed=frozenset({"a", "e"}))
    found = merged(MINE, other)
    assert found.told == {"a", "b", "c"}
    assert found.failed == {"d", "e"}
    assert merged(None, other) == other


@pytest.mark.parametrize(
    ("change", "is_newer"),
    [({"number": 4}, True), ({"stage": "cleared"}, True), ({"number": 2, "stage": "cleared"}, False)],
)
def test_the_larger_number_then_the_later_stage_is_newer(change: dict[str, Any], is_newer: bool) -> None:
    other = MINE._replace(**change, told=frozenset())
    assert merged(MINE, other) == (other if is_newer else MINE)


@pytest.mark.parametrize(
    ("change", "is_state"),
    [
        ({}, True), ({"number": NUMBER_MAX - 1}, True), ({"number": NUMBER_MAX}, False),
        ({"number": 0}, False), ({"stage": "gone"}, False), ({"since_ns": -1}, False),
        ({"since_ns": 1 << 63}, False), ({"of": 7}, False), ({"told": "ops"}, False),
    ],
)  # fmt: skip
def test_a_record_that_is_no_state_is_none(change: dict[str, Any], is_state: bool) -> None:
    found = state_of(MINE.as_record() | change)
    assert (found is not None) == is_state
    assert change or found == MINE
