"""What people read of an alarm: a line, a mail, and the variables of a command."""

import pytest

from appliance.alarms.notice import Notice, at_stage
from topologies.model.alarms import Stage

NOTICE = Notice("plant", "gw-a", "hot", "bus p", "raised", 3, "error", "", "up", "gw-b", "2026-01-01")


@pytest.mark.parametrize(
    ("stage", "words", "shown"),
    [
        ("raised", "hot", "hot"),
        ("acknowledged", "hot", "hot"),
        ("cleared", "hot", "was: hot"),
        ("cleared", "", ""),
    ],
)
def test_of_a_cleared_alarm_the_words_say_that_it_was_so(stage: Stage, words: str, shown: str) -> None:
    assert at_stage(stage, words) == shown


def test_the_line_has_the_text_of_the_alarm_or_else_its_cause() -> None:
    assert NOTICE.line() == "[plant] hot raised: bus p: up"
    assert (
        NOTICE._replace(text="call me", state="cleared").line() == "[plant] hot cleared: bus p: was: call me"
    )


def test_a_command_has_a_variable_for_each_field_and_one_for_the_alarm() -> None:
    found = dict(NOTICE.environment())
    assert (found["BUSCOUPLER_ALARM"], found["BUSCOUPLER_ALARM_ID"]) == ("hot", "plant/hot/bus p/3")
    fields = {f"BUSCOUPLER_ALARM_{name.upper()}" for name in ("id", *Notice._fields)}
    assert found.keys() == fields - {"BUSCOUPLER_ALARM_ALARM"} | {"BUSCOUPLER_ALARM"}
