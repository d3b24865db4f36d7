"""A gateway without traffic: it wakes up a few times a second, and the page says what was missed."""

import pytest

from benchmarks.idle import FIVE, PERCENT, PSS_MIB, WAKES, Idle, idle, page, running


def test_a_gateway_with_five_media_can_be_measured() -> None:
    with running(FIVE, 0.3) as pid:
        found = idle(pid, 0.5)
    assert found.wakes > 0
    assert found.percent > 0


@pytest.mark.parametrize(
    ("wakes", "percent", "share", "missed"),
    [(WAKES, PERCENT, PSS_MIB, 0), (6, 0.1, 20, 1), (4, 0.4, 20, 1), (4, 0.1, 31, 1), (6, 0.4, 31, 3)],
)
def test_the_page_says_what_was_missed(wakes: float, percent: float, share: float, missed: int) -> None:
    assert page([Idle(wakes, percent)], [(37.0, share)]).count("**missed**") == missed
