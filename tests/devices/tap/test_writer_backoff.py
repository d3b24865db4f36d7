"""A recorder that cannot keep up rests only while the data path is busy."""

import pytest

from devices.tap.writer_backoff import BACKOFF_S, WriterBackoff


def test_a_busy_data_path_is_left_alone_for_a_while() -> None:
    backoff = WriterBackoff()
    backoff.look(10.0, 5.0)
    backoff.look(10.25, 5.24)
    backoff.begin(10.3)
    assert not backoff.over(10.3 + BACKOFF_S - 0.01)
    assert backoff.over(10.3 + BACKOFF_S)


def test_one_that_is_not_busy_goes_on_at_once() -> None:
    backoff = WriterBackoff()
    assert backoff.over(0.0)
    backoff.begin(1.0)  # the state has not been checked yet
    assert backoff.over(1.0)
    backoff.look(10.0, 5.0)
    backoff.look(10.25, 5.1)
    backoff.begin(10.3)
    assert backoff.over(10.3)


def test_a_look_too_soon_says_nothing() -> None:
    backoff = WriterBackoff()
    backoff.look(10.0, 5.0)
    backoff.look(10.25, 5.24)
    backoff.look(10.26, 5.24)  # still busy at the last check
    backoff.begin(10.3)
    assert not backoff.over(10.3)
    backoff.look(10.5, 5.3)
    backoff.begin(20.0)
    assert backoff.over(20.0)


@pytest.mark.parametrize(("used_s", "rests"), [(0.75, False), (0.76, True)])
def test_busy_is_more_than_three_quarters_of_a_core(used_s: float, rests: bool) -> None:
    backoff = WriterBackoff()
    backoff.look(10.0, 5.0)
    backoff.look(11.0, 5.0 + used_s)
    backoff.begin(11.0)
    assert backoff.over(11.0) is not rests


@pytest.mark.parametrize(("passed_s", "rests"), [(0.04, False), (0.05, True)])
def test_a_look_counts_from_50_ms_after_the_last_on(passed_s: float, rests: bool) -> None:
    backoff = WriterBackoff()
    backoff.look(0.0, 0.0)
    backoff.look(passed_s, passed_s)
    backoff.begin(passed_s)
    assert backoff.over(passed_s) is not rests


def test_a_rest_takes_six_seconds() -> None:
    assert BACKOFF_S == 6
