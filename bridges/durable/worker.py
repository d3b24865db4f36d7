"""The one thread in which a journal is written and read, and the timers beside it; both end together."""

from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """A thread, and timers of `loop`. Its work begins when that of the one `before` it, if any, has ended."""

    def __init__(self, loop: AbstractEventLoop, before: "Worker | None" = None) -> None:
        self._loop, self._is_open = loop, True
        self._thread = ThreadPoolExecutor(1, "journal")
        self._timers = dict[object, TimerHandle]()
        if before is not None:
            self._thread.submit(before.join)

    def run(self, work: Callable[[], T], done: "Callable[[Future[T]], None]") -> None:
        """Do work in the thread, then call `done` with the outcome, unless the worker has closed."""

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                future.exception()  # an error that nobody looks at is logged
                if self._is_open:
                    done(future)

        if self._is_open:
            self._loop.run_in_executor(self._thread, work).add_done_callback(finished)

    def later(self, delay_s: float, call: Callable[[], None], name: str = "") -> None:
        """Call a function after a time, unless the worker closes before, or a call of that name is to come.

        Calls without a name are independent of each other.
        """
        key = name or object()
        if key in self._timers:
            return

        def due() -> None:
            del self._timers[key]
            call()

        self._timers[key] = self._loop.call_later(delay_s, due)

    def close(self, *last: Callable[[], object], wait: bool = False) -> None:
        """Do the last work; with `wait`, return when that is done."""
        self._is_open = False
        for timer in self._timers.values():
            timer.cancel()
        for work in last:
            self._thread.submit(work)
        self._thread.shutdown(wait)

    def join(self) -> None:
        """Wait until the last work is done. Call it after `close`; it blocks."""
        self._thread.shutdown(wait=True)
