"""Announcements that come together are passed on one after the other, of each gateway the newest."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from bus.announcements import SPEAKERS_MAX
from bus.turns import TURN_S, Turns


class Loop:
    """Timers by hand: `run` fires all that are due up to a time."""

    def __init__(self) -> None:
        self.now_s = 10.0
        self._timers: list[tuple[float, Callable[..., None], tuple[object, ...]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, at_s: float, call: Callable[..., None], *words: object) -> Any:
        self._timers.append((at_s, call, words))
        return self

    def cancel(self) -> None:
        self._timers.clear()

    def run(self, until_s: float) -> None:
        while self._timers and self._timers[0][0] <= until_s:
            at_s, call, words = self._timers.pop(0)
            self.now_s = max(self.now_s, at_s)
            call(*words)
        self.now_s = until_s


def test_of_each_gateway_the_newest_goes_in_the_order_in_which_they_came_first() -> None:
    loop, passed = Loop(), list[tuple[float, bytes, str]]()
    turns = Turns[str](lambda frame, source: passed.append((round(loop.now_s, 3), frame, source)))
    as_loop = cast(asyncio.AbstractEventLoop, loop)
    for name in ("a", "b", "c", "b"):
        turns.wait(name, f"{name}{len(passed)}".encode(), name, as_loop)
    assert passed == []
    turns.wait("b", b"newest", "elsewhere", as_loop)
    loop.run(11)
    times = [10.0, round(10 + TURN_S, 3), round(10 + 2 * TURN_S, 3)]
    assert passed == list(zip(times, [b"a0", b"newest", b"c0"], ["a", "elsewhere", "c"], strict=True))
    turns.wait("a", b"at once", "a", as_loop)
    loop.run(11)
    assert passed[-1] == (11.0, b"at once", "a")


def test_what_waits_is_bounded_and_goes_nowhere_once_it_is_closed() -> None:
    loop, passed = Loop(), list[bytes]()
    turns = Turns[None](lambda frame, _: passed.append(frame))
    as_loop = cast(asyncio.AbstractEventLoop, loop)
    for number in range(SPEAKERS_MAX + 5):
        turns.wait(str(number), b"x", None, as_loop)
    loop.run(10 + 2 * SPEAKERS_MAX * TURN_S)
    assert len(passed) == SPEAKERS_MAX
    turns.wait("a", b"x", None, as_loop)
    turns.close()
    turns.close()
    loop.run(1000)
    assert len(passed) == SPEAKERS_MAX
