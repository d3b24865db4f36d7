"""Silence, questions and beats, in a time of our own."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog.life import Pulse, State, Watch

ALIVE, SUSPECT, GONE = State.ALIVE, State.SUSPECT, State.GONE


def watched(watch: Watch, until_s: float, step_s: float = 0.25) -> tuple[list[float], dict[State, float]]:
    """When a peer that says nothing is asked, and when each state begins."""
    asked: list[float] = []
    states: dict[State, float] = {}
    for step in range(int(until_s / step_s) + 1):
        now_s = step * step_s
        states.setdefault(watch.state(now_s), now_s)
        if watch.state(now_s) is not GONE and watch.ask(now_s):
            asked.append(now_s)
    return asked, states


def test_one_that_does_not_beat_is_asked_after_each_interval() -> None:
    asked, states = watched(Watch(1.0, False, 0.0), 6)
    assert asked == [1.0, 2.0, 3.0, 4.0]
    assert states == {ALIVE: 0.0, SUSPECT: 2.0, GONE: 5.0}


def test_one_that_beats_is_asked_when_it_is_suspect() -> None:
    asked, states = watched(Watch(1.0, True, 0.0), 6)
    assert asked == [2.0, 3.0, 4.0]
    assert states == {ALIVE: 0.0, SUSPECT: 2.0, GONE: 5.0}


@pytest.mark.parametrize("beats", [False, True])
@pytest.mark.parametrize("interval_s", [0.25, 1.0, 10.0, 60.0])
def test_gone_after_five_intervals(beats: bool, interval_s: float) -> None:
    _, states = watched(Watch(interval_s, beats, 0.0), 7 * interval_s, interval_s / 4)
    assert states == {ALIVE: 0.0, SUSPECT: 2 * interval_s, GONE: 5 * interval_s}


def test_late_steps_put_it_off_by_less_than_an_interval() -> None:
    _, states = watched(Watch(1.0, True, 0.0), 7, 0.24)
    assert 5.0 <= states[GONE] <= 6.0


@pytest.mark.parametrize("at_s", [1.0, 2.0, 4.99])
def test_any_sign_begins_anew(at_s: float) -> None:
    watch = Watch(1.0, True, 0.0)
    for now_s in (2.0, 3.0, 4.0):
        watch.ask(now_s)
    watch.heard(at_s)
    assert watch.state(at_s + 1.99) is ALIVE
    assert not watch.ask(at_s + 1.99)
    assert watch.ask(at_s + 2.0)
    assert watch.state(at_s + 5.0) is SUSPECT


def test_one_that_answers_each_question_is_never_suspect() -> None:
    watch = Watch(1.0, False, 0.0)
    for step in range(400):
        now_s = step / 4
        assert watch.state(now_s) is ALIVE
        if watch.ask(now_s):
            watch.heard(now_s + 0.2)


def test_a_watcher_that_was_stopped_asks_first() -> None:
    watch = Watch(1.0, True, 0.0)
    assert watch.state(3600.0) is SUSPECT
    assert [watch.ask(3600.0 + step / 4) for step in range(12)] == [True, False, False, False] * 3
    assert watch.state(3602.99) is SUSPECT
    assert watch.state(3603.0) is GONE


def test_a_question_that_has_not_left_makes_nobody_gone() -> None:
    watch = Watch(1.0, False, 0.0)
    asked = 0
    for quarter in range(1, 41):
        asked += watch.ask(quarter / 4)
        watch.put_off(quarter / 4)
        assert watch.state(quarter / 4) is not State.GONE
    assert asked == 1  # and is not asked again meanwhile
    assert [watch.ask(10.5), watch.ask(11.0), watch.ask(12.0)] == [False, True, True]
    assert [watch.state(12.5), watch.state(13.0)] == [State.SUSPECT, State.GONE]


def test_another_interval_holds_from_now_on() -> None:
    watch = Watch(10.0, False, 0.0)
    watch.agree(1.0, True)
    assert watch.state(2.0) is SUSPECT
    assert (watch.interval_s, watch.beats) == (1.0, True)


@given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["heard", "ask"])), max_size=40), st.booleans())
def test_nobody_is_gone_whom_nobody_asked(steps: list[tuple[int, str]], beats: bool) -> None:
    """Three questions, each with an interval to be answered, come before every end."""
    watch, now_s, asked = Watch(1.0, beats, 0.0), Fraction(0), list[Fraction]()
    for quarters, what in steps:
        now_s += Fraction(quarters, 4)
        if what == "heard":
            watch.heard(float(now_s))
            asked.clear()
        elif watch.ask(float(now_s)):
            asked.append(now_s)
        if watch.state(float(now_s)) is GONE:
            assert len(asked) >= 3
            assert now_s - asked[-1] >= 1


def test_a_beat_is_due_in_each_interval() -> None:
    pulse, beats = Pulse(1.0, 0.0), []
    for step in range(13):
        if pulse.due(step / 4):
            pulse.said(step / 4)
            beats.append(step / 4)
    assert beats == [0.0, 1.0, 2.0, 3.0]


def test_no_beat_beside_traffic() -> None:
    pulse = Pulse(1.0, 0.0)
    for step in range(40):
        pulse.said(step / 4)
        assert not pulse.due(step / 4 + 0.99)
    assert pulse.due(39 / 4 + 1.0)


def test_two_questions_are_not_enough_to_be_gone() -> None:
    watch = Watch(1.0, True, 0.0)
    assert [watch.ask(now_s) for now_s in (100.0, 101.0)] == [True, True]
    assert watch.state(110.0) is SUSPECT
    assert watch.ask(110.0)
    assert [watch.state(110.99), watch.state(111.0)] == [SUSPECT, GONE]


@pytest.mark.parametrize(
    ("at_s", "silence_ms"), [(7.0, 0), (7.0009, 0), (7.25, 250), (6.5, 0), (3607.0, 3_600_000)]
)
def test_silence_is_told_in_whole_milliseconds_and_never_below_zero(at_s: float, silence_ms: int) -> None:
    watch = Watch(1.0, True, 0.0)
    watch.heard(7.0)
    assert watch.silence_ms(at_s) == silence_ms
