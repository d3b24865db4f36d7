"""The sharing of one thing by all that runs on an event loop."""

import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class OfLoop(threading.local, Generic[T]):
    """One thing for the loop of a thread, which has one loop at a time. `make(loop)` makes it.

    It is let go of when the thread asks for that of another loop: kept by the loop, it would keep the loop.
    """

    def __init__(self, make: Callable[[AbstractEventLoop], T]) -> None:
        self._make = make
        self._made: tuple[AbstractEventLoop, T] | None = None

    def __call__(self, loop: AbstractEventLoop) -> T:
        """Return the thing of a loop. Call it in the thread of the loop."""
        if self._made is None or self._made[0] is not loop:
            self._made = loop, self._make(loop)
        return self._made[1]
