"""The timers beside the thread of a journal: each ends in its call, or in none, and never in an exception."""

import asyncio
from typing import Any

import pytest

from bridges.durable.worker import Worker
from tests.helpers.peers import until


@pytest.fixture
async def faults() -> list[dict[str, Any]]:
    """The exceptions that callbacks of the loop end in."""
    found = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    return found


async def test_calls_without_a_name_are_all_made(faults: list[dict[str, Any]]) -> None:
    worker, made = Worker(asyncio.get_running_loop()), list[int]()
    for number in (2, 0, 1):
        worker.later(number / 1000, lambda number=number: made.append(number))  # type: ignore[misc]
    await until(lambda: len(made) == 3, what="the calls")
    assert made == [0, 1, 2]
    worker.close()
    assert not faults


async def test_of_calls_with_one_name_one_is_made_at_a_time(faults: list[dict[str, Any]]) -> None:
    worker, made = Worker(asyncio.get_running_loop()), list[str]()
    for word in ("first", "while it is to come"):
        worker.later(0.0, lambda word=word: made.append(word), "again")  # type: ignore[misc]
    await until(lambda: bool(made), what="the call")
    worker.later(0.0, lambda: made.append("next"), "again")
    await until(lambda: len(made) == 2, what="the next call")
    assert made == ["first", "next"]
    worker.later(0.0, lambda: made.append("after the end"))
    worker.close()
    await asyncio.sleep(0)
    assert made == ["first", "next"]
    assert not faults
