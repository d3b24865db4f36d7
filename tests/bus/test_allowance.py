"""An allowance: what was taken comes back with time, and never more than all of it."""

from bus.allowance import Allowance


def test_all_is_there_at_once_and_what_was_taken_comes_back_with_time() -> None:
    allowance = Allowance(rate=2.0, at_once=10.0, now=100.0)
    assert (allowance.left(100.0), allowance.full(100.0)) == (10.0, True)
    allowance.take(4.0, 100.0)
    assert (allowance.left(100.0), allowance.full(100.0)) == (6.0, False)
    assert allowance.left(101.0) == 8.0
    assert not allowance.full(101.75)
    assert allowance.full(102.0)


def test_no_more_than_all_ever_comes_back() -> None:
    allowance = Allowance(2.0, 10.0, 0.0)
    allowance.take(1.0, 0.0)
    assert allowance.left(3600.0) == 10.0
    allowance.take(3.0, 3600.0)
    assert allowance.left(3600.5) == 8.0


def test_more_may_be_taken_than_there_is_and_then_it_takes_longer() -> None:
    allowance = Allowance(2.0, 10.0, 0.0)
    allowance.take(16.0, 0.0)
    assert [allowance.left(now) for now in (0.0, 3.0, 4.0)] == [-6.0, 0.0, 2.0]
