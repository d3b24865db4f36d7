"""The turns of openings, each of which may wait long for a device or a network that is not there."""

from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from bus.machine.aside import THREADS_MAX
from bus.machine.of_loop import OfLoop

OPENINGS_MAX: Final = THREADS_MAX // 2
"""The openings of a loop that have threads at a time, which leaves as many for all other work."""


class Openings:
    """The openings of a loop: at most `most` of them run in threads, the others wait for their turn."""

    def __init__(self, loop: AbstractEventLoop, most: int = OPENINGS_MAX) -> None:
        self._loop, self._most = loop, most
        self._busy = 0
        self._waiting = deque[tuple[Callable[[], Any], Future[Any]]]()

    def run(self, call: Callable[[], Any]) -> "Future[Any]":
        """Run `call` in a thread, at once or in its turn. Return a future with its outcome."""
        if self._busy < self._most:
            return self._start(call)
        outcome: Future[Any] = self._loop.create_future()
        self._waiting.append((call, outcome))
        return outcome

    def _start(self, call: Callable[[], Any]) -> "Future[Any]":
        future = self._loop.run_in_executor(None, call)
        self._busy += 1
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: "Future[Any]") -> None:
        self._busy -= 1
        while self._waiting and self._busy < self._most:
            call, outcome = self._waiting.popleft()
            if not outcome.cancelled():
                self._start(call).add_done_callback(partial(_settle, outcome))


def _settle(outcome: "Future[Any]", ended: "Future[Any]") -> None:
    """Give a future the outcome of another that has ended."""
    if outcome.cancelled() or ended.cancelled():
        outcome.cancel()
    elif (error := ended.exception()) is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(ended.result())


openings_of = OfLoop(Openings)
