"""The wait from the grant of a lease to forwarding."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from bus.leases.catch_up import CatchUp
from tests.bus.leases.candidacies import Behind


@pytest.fixture
def behind() -> Iterator[Behind]:
    with closing(Behind()) as loop:
        yield loop


class Wait:
    """A wait of 20 ms, and of at most 100 ms for what is unread."""

    def __init__(self, loop: Behind) -> None:
        self.ended_s: list[float] = []
        self.began_s = loop.clock.now
        self.one = CatchUp()
        self.one.begin(loop, 0.02, 0.1, lambda: self.ended_s.append(round(loop.clock.now - self.began_s, 6)))


def test_who_has_read_all_forwards_after_the_shortest_wait(behind: Behind) -> None:
    wait = Wait(behind)
    behind.read_all()
    assert wait.one.is_on
    behind.clock.run(1.0)
    assert wait.ended_s == [0.02]
    assert not wait.one.is_on


def test_who_is_late_reads_first_what_waits(behind: Behind) -> None:
    wait = Wait(behind)
    behind.clock.run(0.07)
    assert wait.one.is_on
    behind.read_all()
    behind.clock.run(1.0)
    assert wait.ended_s == [0.07]


def test_who_never_has_read_all_forwards_in_the_end(behind: Behind) -> None:
    wait = Wait(behind)
    behind.clock.run(1.0)
    behind.read_all()
    behind.clock.run(1.0)
    assert wait.ended_s == [0.1]


@pytest.mark.parametrize("after_s", [0.0, 0.05])
def test_who_waits_no_more_never_forwards(behind: Behind, after_s: float) -> None:
    wait = Wait(behind)
    behind.clock.run(after_s)
    wait.one.cancel()
    behind.read_all()
    behind.clock.run(1.0)
    assert wait.ended_s == []


def test_waits_one_after_another_ask_the_loop_once_while_it_has_not_answered(behind: Behind) -> None:
    wait = Wait(behind)
    for _ in range(3):
        wait.one.begin(behind, 0.02, 0.1, lambda: wait.ended_s.append(behind.clock.now - wait.began_s))
    assert len(behind.asked) == 1
    behind.clock.run(0.05)
    assert wait.ended_s == []
    behind.read_all()
    behind.clock.run(1.0)
    assert wait.ended_s == [pytest.approx(0.05)]
    wait.one.begin(behind, 0.02, 0.1, lambda: None)
    assert len(behind.asked) == 1
