"""The judgement on the condition of a link."""

from typing import get_args

import pytest

from appliance.status.conditions import carries, controller, judged
from appliance.status.health import Word
from bridges.media.can.state import State

COUNTERS = ": error counters 130 sending, 9 receiving"


def test_every_state_of_a_controller_is_judged_with_its_counters_or_without() -> None:
    found = {state: judged(state).word for state in get_args(State)}
    assert found == {
        "unknown": "ok", "error-active": "ok", "error-warning": "degraded", "error-passive": "degraded",
        "bus-off": "trouble",
    }  # fmt: skip
    for state in found:
        plain, counted = judged(state), judged(f"{state}{COUNTERS}")
        assert controller(counted.shown) == state
        assert (counted.word, counted.why) == (plain.word, plain.why)
        if plain.why:
            assert counted.text == plain.text == f"{state}: {plain.why}"


@pytest.mark.parametrize(
    ("condition", "word", "shown", "text"),
    [
        ("", "ok", "", ""),
        ("300 bytes: another baud rate?", "trouble", "noise", "300 bytes: another baud rate?"),
        ("pump: does not answer", "degraded", "pump: does not answer", "pump: does not answer"),
    ],
)
def test_noise_is_trouble_and_other_words_are_of_a_device_in_need(
    condition: str, word: Word, shown: str, text: str
) -> None:
    found = judged(condition)
    assert (found.word, found.shown, found.text) == (word, shown, text)


@pytest.mark.parametrize(
    ("state", "condition", "does"),
    [
        ("up", "", True),
        ("up", "error-passive", True),
        ("up", f"bus-off{COUNTERS}", False),
        ("retrying", "", False),
    ],
)
def test_only_a_link_that_is_up_and_not_off_its_bus_carries_messages(
    state: str, condition: str, does: bool
) -> None:
    assert carries(state, condition) == does
