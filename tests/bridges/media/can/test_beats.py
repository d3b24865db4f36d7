"""Looks that are due at one time share one timer, and those that confirm come first."""

import asyncio
from asyncio import get_running_loop

from bridges.media.can.beats import beats_of


async def test_looks_of_one_time_share_a_timer_and_come_in_order() -> None:
    loop, seen = get_running_loop(), list[str]()
    beats, due_s = beats_of(loop), loop.time()
    timers = list[float]()
    call_at = loop.call_at
    loop.call_at = lambda when, *rest, **named: timers.append(when) or call_at(when, *rest, **named)  # type: ignore[method-assign,func-returns-value]
    for name, is_first in (("a", False), ("b", True), ("c", False), ("gone", False)):
        look = beats.look_at(due_s, lambda name=name: seen.append(name), is_first)  # type: ignore[misc]
    look.cancel()
    beats.look_at(due_s + 0.001, lambda: seen.append("later"), False)
    assert (timers, look.due_s) == ([due_s, due_s + 0.001], due_s)
    while "later" not in seen:
        await asyncio.sleep(0)
    assert seen == ["b", "a", "c", "later"]
    assert beats_of(loop) is beats


async def test_a_look_that_fails_is_told_and_stops_no_other() -> None:
    loop, seen, told = get_running_loop(), list[str](), list[str]()
    loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
    beats, due_s = beats_of(loop), loop.time()

    def fail() -> None:
        beats.look_at(due_s, lambda: seen.append("again"), False)  # of the same time, which is over
        raise ValueError("broken")

    beats.look_at(due_s, fail, False)
    beats.look_at(due_s, lambda: seen.append("other"), False)
    while "again" not in seen:
        await asyncio.sleep(0)
    assert (seen, told) == (["other", "again"], ["broken"])
