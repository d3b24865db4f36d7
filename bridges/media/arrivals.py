"""From a thread of a driver that blocks to the event loop: items in order, a bounded number in each call."""

import contextlib
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Arrivals(deque[T]):
    """Hands the items that a thread appends to `take` on the loop, at most `run` in one call.

    `called` while that is due: a thread in a hurry need not `announce` then.
    """

    def __init__(self, loop: AbstractEventLoop, take: Callable[[list[T]], None], run: int) -> None:
        super().__init__()
        self._loop, self._take, self._run = loop, take, run
        self.called = False

    def announce(self) -> None:
        """Have what was appended taken on the loop soon. From the thread."""
        if self and not self.called:
            self.called = True
            self.call(self._deliver)

    def call(self, function: Callable[..., None], *arguments: str) -> None:
        """Call `function` on the loop. From the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def flush(self) -> None:
        """Take all that is left now. On the loop."""
        while self:
            self._deliver()

    def _deliver(self) -> None:
        # Cleared first: an item that comes in between causes one call too many, never one too few.
        self.called = False
        self._take([self.popleft() for _ in range(min(len(self), self._run))])
        if self and not self.called:
            self.called = True
            self._loop.call_soon(self._deliver)
