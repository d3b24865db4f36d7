"""How old messages are, by clocks that may be set."""

import pytest

from bridges.durable.ages import SKEW_MS, UNKNOWN_MS, Wall, age_of, time_of


class Clocks:
    """A monotonic clock and one of the day."""

    def __init__(self) -> None:
        self.mono_s, self.unix_s = 5.0, 1000.0
        self.wall = Wall(lambda: self.mono_s, lambda: self.unix_s)

    def after(self, mono_s: float, unix_s: float) -> int:
        self.mono_s += mono_s
        self.unix_s += unix_s
        return self.wall.now_ms


def test_time_goes_on_although_the_clock_is_set_back() -> None:
    clocks = Clocks()
    assert clocks.after(0, 0) == 1_000_000
    assert clocks.after(2, -3600) == 1_002_000
    assert clocks.after(1, 1) == 1_003_000


def test_time_goes_with_a_clock_that_is_set_forward_or_that_a_machine_slept_by() -> None:
    clocks = Clocks()
    assert clocks.after(1, 61) == 1_061_000
    assert clocks.after(1, -59) == 1_062_000


@pytest.mark.parametrize(
    ("ahead_ms", "age_ms"),
    [(-7, 7), (0, 0), (SKEW_MS, 0), (SKEW_MS + 1, UNKNOWN_MS), (-(1 << 40), UNKNOWN_MS)],
)
def test_what_comes_from_the_future_is_as_old_as_can_be(ahead_ms: int, age_ms: int) -> None:
    assert age_of(1 << 41, (1 << 41) + ahead_ms) == age_ms


@pytest.mark.parametrize("age_ms", [0, 7, 3_600_000, UNKNOWN_MS])
@pytest.mark.parametrize("now_ms", [0, 5000, 1 << 41], ids=["never set", "just started", "set"])
def test_what_has_an_age_keeps_it_or_is_of_an_unknown_one(now_ms: int, age_ms: int) -> None:
    time_ms = time_of(now_ms, age_ms)
    assert time_ms >= 0
    assert age_of(now_ms, time_ms) == (age_ms if age_ms <= now_ms else UNKNOWN_MS)
    assert age_of(now_ms + 1000, time_ms) >= age_ms
