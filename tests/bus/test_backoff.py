from random import Random

from bus.backoff import Attempts, Backoff


def test_pauses_double_up_to_the_longest_and_start_again() -> None:
    backoff = Backoff(0.1, 0.5, lambda low, high: high)
    assert [backoff.next_s() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert (backoff.pause_s, backoff.next_s()) == (0.1, 0.1)


def test_jitter_takes_away_at_most_half() -> None:
    backoff = Backoff(2.0, 2.0, Random(7).uniform)
    assert all(1.0 <= backoff.next_s() <= 2.0 for _ in range(100))


def test_after_a_failure_another_address_comes_first_and_after_a_success_it_stays() -> None:
    attempts = Attempts(0.1, 0.5, lambda low, high: high)
    assert [(attempts.after(lasted=False), attempts.turn) for _ in range(3)] == [(0.1, 1), (0.2, 2), (0.4, 3)]
    assert (attempts.after(lasted=True), attempts.turn) == (0.1, 3)


def test_other_pauses_may_stand_for_those_of_attempts() -> None:
    attempts, hurried = Attempts(0.1, 0.5, lambda low, high: high), Backoff(0.1, 0.5, lambda low, high: high)
    hurried.next_s()
    assert (attempts.after(False, hurried), attempts.after(False, hurried)) == (0.2, 0.4)
    assert (attempts.turn, attempts.pause_s) == (2, 0.1)


def test_other_bounds_hold_for_the_next_pause_too() -> None:
    backoff = Backoff(0.1, 8.0, lambda low, high: high)
    assert [backoff.next_s() for _ in range(4)] == [0.1, 0.2, 0.4, 0.8]
    backoff.revise(0.2, 0.5)
    assert [backoff.next_s() for _ in range(2)] == [0.5, 0.5]
    backoff.revise(0.2, 2.0)
    assert [backoff.next_s() for _ in range(3)] == [0.5, 1.0, 2.0]
    backoff.reset()
    backoff.revise(0.05, 2.0)
    assert [backoff.next_s() for _ in range(2)] == [0.05, 0.1]
