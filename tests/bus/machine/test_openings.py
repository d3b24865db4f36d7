"""Openings take turns: those that hang keep neither the others nor other work from going on."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from bus.machine.openings import OPENINGS_MAX, Openings, openings_of
from bus.machine.wake_hook import WakefulLoop
from tests.helpers.peers import until

Gate = threading.Event


def test_what_hangs_leaves_threads_for_other_work_and_a_turn_for_each() -> None:
    gate, done = Gate(), list[int]()

    def opening(number: int) -> int:
        gate.wait(20.0)
        done.append(number)
        return number

    async def main() -> list[int]:
        openings = openings_of(asyncio.get_running_loop())
        futures = [openings.run(partial(opening, number)) for number in range(3 * OPENINGS_MAX)]
        assert await asyncio.to_thread(lambda: 7) == 7
        assert done == []
        gate.set()
        found: list[int] = await asyncio.gather(*futures)
        return found

    with asyncio.Runner(loop_factory=WakefulLoop) as runner:
        assert runner.run(main()) == list(range(3 * OPENINGS_MAX))


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_they_begin_in_order_and_not_more_at_a_time(gate: Gate) -> None:
    begun = list[int]()

    def opening(number: int) -> None:
        begun.append(number)
        gate.wait(20.0)

    openings = Openings(asyncio.get_running_loop(), 1)
    futures = [openings.run(partial(opening, number)) for number in range(4)]
    await until(lambda: begun == [0])
    gate.set()
    await asyncio.gather(*futures)
    assert begun == [0, 1, 2, 3]


def failing() -> None:
    raise OSError("no such device")


@pytest.mark.parametrize("calls", [[failing], [failing, failing, failing]], ids=["at once", "in its turn"])
async def test_a_fault_comes_to_the_one_who_asked_and_ends_a_turn(calls: list[Callable[[], None]]) -> None:
    openings = Openings(asyncio.get_running_loop(), 1)
    outcomes = await asyncio.gather(*map(openings.run, calls), return_exceptions=True)
    assert [str(one) for one in outcomes] == ["no such device"] * len(calls)
    assert await openings.run(lambda: 7) == 7


async def test_nobody_need_want_an_outcome_any_more(gate: Gate) -> None:
    openings = Openings(asyncio.get_running_loop(), 1)
    first, unwanted, last = openings.run(partial(gate.wait, 20.0)), openings.run(int), openings.run(lambda: 7)
    unwanted.cancel()
    gate.set()
    assert await last == 7
    assert first.result()
