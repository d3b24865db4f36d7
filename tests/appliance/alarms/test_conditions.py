"""Values, and their absence, call for an alarm and for its end: by limits, hysteresis and times."""

import pytest

from appliance.alarms.conditions import Judge, Spread
from tests.appliance.alarms.alarms_support import spec


def heard(judge: Judge, *values: float, start_s: float = 0.0) -> list[bool | None]:
    """Return the judgements of values that come a second apart."""
    found = list[bool | None]()
    for place, value in enumerate(values):
        judge.hear(value, start_s + place)
        found.append(judge.look(start_s + place).due)
    return found


def test_nothing_is_known_before_the_first_value() -> None:
    judge = Judge(spec(above=8), 0)
    assert judge.look(1).due is None
    judge.hear(None, 2)  # no number
    assert judge.look(2).due is None
    assert heard(judge, 8, start_s=3) == [False]


def test_it_stays_due_within_the_hysteresis() -> None:
    assert heard(Judge(spec(above=8, hysteresis=1), 0), 8.5, 7.5, 7.1, 7, 7.5, 8.1) == [
        True, True, True, False, False, True,
    ]  # fmt: skip
    assert heard(Judge(spec(below=2, hysteresis=1), 0), 1, 2.5, 3, 2.5) == [True, True, False, False]


def test_both_limits_together_are_a_range() -> None:
    assert heard(Judge(spec(above=8, below=2), 0), 5, 9, 1, 5) == [False, True, True, False]


def test_a_value_must_stay_beyond_for_some_time_and_back_for_some_time() -> None:
    judge = Judge(spec(above=8, for_s=2, clear_for_s=3), 0)
    assert heard(judge, 9, 7, 9, 9, 9, 7, 7, 9, 7, 7, 7, 7) == [
        None, False, False, False, True, True, True, True, True, True, True, False,
    ]  # fmt: skip


def test_a_peak_between_two_looks_is_due_once() -> None:
    judge = Judge(spec(above=8), 0)
    judge.hear(1, 0)
    judge.look(0)
    judge.hear(9, 1)
    judge.hear(1, 1)
    assert judge.look(1.2).due is True
    assert judge.look(1.4).due is False


@pytest.mark.parametrize("key", ["missing_s", "stale_s"])
def test_silence_is_due_until_a_frame_comes(key: str) -> None:
    judge = Judge(spec(**{key: 10}), 0)
    judge.hear(None, 1)
    assert [judge.look(at_s).due for at_s in (1, 10, 11, 12)] == [False, False, True, True]
    assert "10 s" in judge.look(12).cause
    judge.hear(None, 13)
    assert judge.look(13).due is False


def test_frames_that_never_came_are_missing_too() -> None:
    judge = Judge(spec(missing_s=10), 5)
    assert [judge.look(at_s).due for at_s in (6, 14, 15)] == [None, None, True]


def test_what_was_due_before_a_restart_stays_so_until_a_frame_comes() -> None:
    judge = Judge(spec(above=8, hysteresis=1), 0, True, "9 is above 8")
    assert judge.look(100) == (True, "9 is above 8")
    judge.hear(7.5, 101)
    assert judge.look(101).due is True
    judge.hear(7, 102)
    assert judge.look(102).due is False


def test_a_change_is_seen_within_its_time_and_forgotten_after_it() -> None:
    judge = Judge(spec(changed_by=5, within_s=16), 0)
    assert heard(judge, 1, 3, 6.5) == [False, False, True]
    judge.hear(6.5, 30)
    assert judge.look(30).due is False


def test_a_spread_is_that_of_its_time() -> None:
    spread = Spread(16)
    for step in range(10_000):
        spread.hear(step % 7, step / 100)
    assert spread.of(100) == 6
    assert spread.of(200) is None


def test_a_step_counts_for_the_whole_time_however_many_values_follow() -> None:
    judge = Judge(spec(changed_by=5, within_s=16), 0)
    assert heard(judge, 1, *17 * [7]) == [False, *16 * [True], False]


def test_a_link_that_is_not_up_is_missing_and_its_value_counts_all_the_same() -> None:
    judge = Judge(spec(link="can", missing_s=5), 0)
    judge.link(True, None, 0)
    judge.link(False, None, 4)
    assert judge.look(4).due is False
    assert judge.look(5) == (True, "not up for 5 s")
    busy = Judge(spec(link="can", of="in", above=10), 0)
    busy.link(False, 11, 1)
    assert busy.look(1).due is True


@pytest.mark.parametrize(
    "conditions",
    [{"below": 2}, {"changed_by": 4}, {"stale_s": 5}, {"below": 2, "changed_by": 4, "stale_s": 5}],
)
def test_a_cause_does_not_grow_while_several_conditions_last(conditions: dict[str, float]) -> None:
    judge = Judge(spec(above=8, hysteresis=3, **conditions), 0)
    causes = [judge.look(0).cause]
    for second, value in enumerate([9, *20 * [5.5]]):
        judge.hear(value, second)
        causes.append(judge.look(second).cause)
    causes += [judge.look(second).cause for second in range(21, 60)]
    assert causes[1].startswith("9 is above 8")
    assert max(map(len, causes)) < 100


def test_a_cause_is_that_of_the_peak_though_the_value_is_back_within_the_hysteresis() -> None:
    judge = Judge(spec(above=8, hysteresis=1), 0)
    judge.hear(9, 0)
    judge.hear(7.5, 0)
    assert judge.look(1) == (True, "9 is above 8")
    taken_over = Judge(spec(above=8, hysteresis=1), 0, due=True, cause="9 is above 8")
    taken_over.hear(7.5, 0)
    assert taken_over.look(1) == (True, "7.5 is not yet back from 8")
