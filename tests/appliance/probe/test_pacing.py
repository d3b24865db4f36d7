"""The pacer's rate, in time that the test makes."""

import pytest

from appliance.probe.pacing import Pacer


def test_the_pacer_keeps_its_rate_over_a_long_time_however_it_is_asked() -> None:
    pacer, now_s, taken = Pacer(1000 / 3, 5.0), 5.0, 0
    for step in range(30_000):
        now_s = 5.0 + step * 0.01
        taken += pacer.take(now_s, 512)
    assert taken == int((now_s - 5.0) * 1000 / 3) + 1
    assert pacer.late == 0


def test_the_pacer_counts_what_a_machine_that_slept_did_not_send() -> None:
    pacer = Pacer(100, 0.0)
    assert pacer.take(0.0, 512) == 1
    assert pacer.take(60.0, 512) == 100
    assert pacer.late == 5900
    assert pacer.take(60.0, 512) == 0
    assert pacer.next_s() == pytest.approx(60.01)


def test_a_batch_takes_no_more_than_it_may() -> None:
    pacer = Pacer(1000, 0.0)
    assert [pacer.take(0.5, 200) for _ in range(4)] == [200, 200, 101, 0]


@pytest.mark.parametrize("rate", [0.1, 0.5, 1, 3])
def test_a_slow_rate_sends_the_first_message_at_once_and_each_other_when_it_is_due(rate: float) -> None:
    pacer = Pacer(rate, 5.0)
    for number in range(20):
        assert pacer.next_s() == pytest.approx(5.0 + number / rate)
        assert pacer.take(pacer.next_s(), 9) == 1
        assert pacer.take(pacer.next_s() - 0.01, 9) == 0
    assert pacer.late == 0


def test_a_machine_that_slept_sends_one_message_even_at_a_rate_below_one_a_second() -> None:
    pacer = Pacer(0.5, 0.0)
    assert pacer.take(100.0, 9) == 1
    assert pacer.late == 50
    assert pacer.next_s() == 102.0
