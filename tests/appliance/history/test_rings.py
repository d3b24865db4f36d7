"""The rings of curves: each second has its place, minutes fold, gaps stay gaps, and all is bounded."""

import sys
from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from appliance.history.rings import MINUTES, NEW, SECONDS, SERIES, Key, Kind, Rings, Scale

S_NS = 1_000_000_000
KINDS = [Kind("rate", "1/s", "mean", ""), Kind("queued", "", "max", ""), Kind("value", "", "last", "")]
RATE, QUEUED, VALUE = (Key(kind.name, "x") for kind in KINDS)
START_S = 1_700_000_040  # the beginning of a minute


def points(made: Rings, key: Key, scale: Scale) -> list[float | None]:
    (curve,) = [one for one in made.curves(key.kind, scale, 99)[0] if one.name == key.name]
    return [None if isnan(point) else point for point in curve.points]


def test_each_second_is_a_point_and_more_than_one_without_a_sample_are_a_gap() -> None:
    made = Rings(KINDS)
    for second in (0, 1, 3, 6):
        made.sample((START_S + second) * S_NS + 5, {RATE: second + 10.0})
        made.sample((START_S + second) * S_NS + 6, {RATE: 99.0})  # the same second
    assert points(made, RATE, SECONDS)[-8:] == [None, 10, 11, 13, 13, None, None, 16]
    assert made.end_ns(SECONDS) == (START_S + 6) * S_NS


def test_a_minute_keeps_the_mean_the_most_or_the_last() -> None:
    made = Rings(KINDS)
    for second in range(121):
        made.sample((START_S + second) * S_NS, {RATE: second % 60, QUEUED: 59 - second % 60, VALUE: second})
    assert points(made, RATE, MINUTES)[-2:] == [29.5, 29.5]
    assert points(made, QUEUED, MINUTES)[-2:] == [59, 59]
    assert points(made, VALUE, MINUTES)[-2:] == [59, 119]
    assert made.end_ns(MINUTES) == (START_S + 60) * S_NS


def test_what_is_older_than_the_ring_has_gone_and_a_series_after_a_day() -> None:
    made = Rings(KINDS)
    made.sample(START_S * S_NS, {RATE: 1.0, VALUE: 7.0})
    made.sample((START_S + 2000) * S_NS, {RATE: 2.0})
    assert points(made, RATE, SECONDS).count(None) == SECONDS.points - 1
    assert points(made, VALUE, MINUTES).count(7.0) == 1
    made.sample((START_S + 100_000) * S_NS, {RATE: 3.0})
    assert made.curves("value", MINUTES, 9) == ([], 0)
    assert points(made, RATE, MINUTES).count(None) == MINUTES.points


def test_a_clock_that_is_set_back_begins_anew() -> None:
    made = Rings(KINDS)
    made.sample(START_S * S_NS, {RATE: 1.0})
    made.sample((START_S - 3600) * S_NS, {RATE: 2.0})
    made.sample((START_S - 3599) * S_NS, {RATE: 3.0})
    made.sample((START_S - 3600) * S_NS, {RATE: 4.0})  # adjusted by a second: waited for
    assert points(made, RATE, SECONDS)[-3:] == [None, 2, 3]


def test_series_beyond_the_bound_are_counted() -> None:
    made = Rings(KINDS)
    values = {Key("rate", str(number)): 0.0 for number in range(SERIES + 7)}
    for second in range(SERIES // NEW + 1):
        made.sample((START_S + second) * S_NS, values)
        assert made.left_out == max(7, SERIES + 7 - NEW * (second + 1))
    shown, more = made.curves("rate", SECONDS, 10)
    assert (len(shown), more) == (10, SERIES - 10)


def test_the_largest_are_shown_in_the_order_of_their_names() -> None:
    made = Rings(KINDS)
    values = {"a": 5, "b": -9, "c": 1, "d": 7}
    made.sample(START_S * S_NS, {Key("rate", name): value for name, value in values.items()})
    assert [curve.name for curve in made.curves("rate", SECONDS, 3)[0]] == ["a", "b", "d"]


@given(st.lists(st.tuples(st.integers(0, 3000), st.floats(-1e6, 1e6, width=32)), max_size=20))
def test_the_points_are_those_of_a_dictionary_by_the_second(steps: list[tuple[int, float]]) -> None:
    made, known, second = Rings(KINDS), dict[int, float](), START_S
    for step, value in steps:
        second += step
        if second not in known:
            known |= {second: value} | ({second - 1: value} if step == 2 and len(known) else {})
        made.sample(second * S_NS, {RATE: value})
    if steps:
        last = range(second - SECONDS.points + 1, second + 1)
        assert points(made, RATE, SECONDS) == [known.get(one) for one in last]


@given(st.lists(st.one_of(st.integers(1, 70), st.integers(1, 100_000)), max_size=20))
def test_the_minutes_are_those_of_a_dictionary_however_far_the_clock_leaps(steps: list[int]) -> None:
    made, known, second = Rings(KINDS), dict[int, float](), START_S
    made.sample(second * S_NS, {VALUE: second % 1000})
    for step in steps:
        known[second // 60] = second % 1000
        second += step
        made.sample(second * S_NS, {VALUE: second % 1000})
    last = range(second // 60 - MINUTES.points, second // 60)
    assert points(made, VALUE, MINUTES) == [known.get(one) for one in last]


def test_a_leap_of_the_clock_empties_places_many_at_once() -> None:
    """One at a time stood a gateway's loop for as long as a lease lasts."""
    made, calls = Rings(KINDS), list[str]()
    made.sample(START_S * S_NS, {RATE: 1.0})
    sys.setprofile(lambda _, event, about: calls.append(event))
    made.sample((START_S + 80_000) * S_NS, {RATE: 2.0})
    sys.setprofile(None)
    assert len(calls) < 100
