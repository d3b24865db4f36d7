"""Limits of tests: what hangs is ended by them, and what only has no turn is not."""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.helpers import ROOT
from tests.helpers.patience import SLICE_S, Patience, Turns, turns
from tests.helpers.peers import until, wait

HERE: Final = os.getpid()


class Told:
    """A directory like /proc that tells what threads of this process, and of processes, have waited."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.waited(HERE, HERE, 0.0)

    def waited(self, process: int, thread: int, late_s: float, *children: int, ran_s: float = 0.001) -> None:
        place = self.directory / str(process) / "task" / str(thread)
        place.mkdir(parents=True, exist_ok=True)
        (place / "schedstat").write_text(f"{int(ran_s * 1e9)} {int(late_s * 1e9)} 5\n")
        (place / "children").write_text("".join(f"{child} " for child in children))


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


@pytest.mark.parametrize(("limit_s", "slices"), [(60.0, 12), (900.0, 180), (2.4, 12)])
def test_a_limit_lasts_for_its_time_in_slices(limit_s: float, slices: int, told: Told) -> None:
    patience, found = Patience(limit_s, told.directory), list[float]()
    while not patience.is_over(passed_s := patience.next_s):
        found.append(passed_s)
    assert max(found) <= SLICE_S
    assert len(found) + 1 == slices
    assert sum(found) + passed_s == pytest.approx(limit_s)


def test_time_without_a_turn_is_none_of_it_and_that_of_the_one_who_waited_longest_counts(told: Told) -> None:
    patience = Patience(60.0, told.directory)
    told.waited(HERE, HERE, 1.0, 8001)
    told.waited(8001, 8001, 0.0, 8002)
    told.waited(8001, 8003, 2.0)
    told.waited(8002, 8002, 3.0)  # a child of a child
    patience.is_over(0.0)
    told.waited(HERE, HERE, 2.0, 8001)
    told.waited(8002, 8002, 7.0)
    assert not patience.is_over(5.0)
    assert patience.left_s == pytest.approx(59.0)
    assert not patience.is_over(58.9), "nobody has waited since"
    assert patience.is_over(0.1)


def test_a_child_that_was_not_seen_before_stands_for_those_that_have_ended(told: Told) -> None:
    patience = Patience(60.0, told.directory)
    told.waited(HERE, HERE, 0.0, 8001, ran_s=9.0)
    told.waited(8001, 8001, 0.9, ran_s=0.1)
    assert not patience.is_over(5.0)
    assert patience.left_s == pytest.approx(60.0 - 5.0 / 10)
    told.waited(8001, 8001, 0.9, ran_s=3.0)
    assert not patience.is_over(5.0)
    assert patience.left_s == pytest.approx(60.0 - 5.0 / 10 - 5.0)


def test_a_kernel_that_tells_nothing_and_processes_that_end_meanwhile_are_no_waits(told: Told) -> None:
    told.waited(HERE, HERE, 3.0, 8001)  # which is no more
    assert turns(HERE, told.directory) == {HERE: Turns(0.001, 3.0)}
    (told.directory / str(HERE) / "task" / str(HERE) / "schedstat").write_text("")
    assert turns(HERE, told.directory) == {}
    assert turns(HERE, told.directory / "nowhere") == {}
    assert Patience(2.0, told.directory).is_over(2.0)


def test_this_kernel_tells_of_this_thread() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("a kernel without CONFIG_SCHED_INFO")
    assert turns(HERE)[HERE].ran_s > 0


async def test_a_wait_for_what_never_comes_ends() -> None:
    with pytest.raises(TimeoutError, match=r"the ferry did not come within 0\.01 s"):
        await until(lambda: False, 0.01, "the ferry")
    with pytest.raises(TimeoutError, match=r"it did not come within 0\.01 s"):
        wait(lambda: False, 0.01)


def test_no_wait_takes_a_processor() -> None:
    """What only yields runs again at once, and takes from what it waits for: `wait` and `until` pause."""
    word = "sched" + "_yield"
    assert [path for path in (ROOT / "tests").rglob("*.py") if word in path.read_text()] == []
