"""A queue from a driver's thread to the event loop: in order, with a bounded number of items in each call."""

import contextlib
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Arrivals(deque[T]):
    """A queue whose items a thread appends, and which the loop passes to `take`, at most `run` in one call.

    `called` is True while such a call is scheduled: the thread can then save the call of `announce`.
    """

    def __init__(self, loop: AbstractEventLoop, take: Callable[[list[T]], None], run: int) -> None:
        super().__init__()
        self._loop, self._take, self._run = loop, take, run
        self.called = False

    def announce(self) -> None:
        """Schedule a call of `take` on the loop for the items that were appended. Call it from the thread."""
        if self:
            self.wake()

    def wake(self) -> None:
        """Schedule a call of `take` on the loop, also without items. Call it from the thread."""
        if not self.called:
            self.called = True
            self.call(self._deliver)

    def call(self, function: Callable[..., None], *arguments: str) -> None:
        """Schedule a call of `function` on the loop. Call it from the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def flush(self) -> None:
        """Pass all remaining items to `take` now. Call it on the loop."""
        while self:
            self._deliver()

    def _deliver(self) -> None:
        # Cleared first: an item that is appended meanwhile may cause a needless call, but is never missed.
        self.called = False
        self._take([self.popleft() for _ in range(min(len(self), self._run))])
        if self and not self.called:
            self.called = True
            self._loop.call_soon(self._deliver)
