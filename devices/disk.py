"""A thread that does what may block, one job after the other, for an event loop that never waits for it."""

import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Done(Generic[T]):
    """A job has ended: with what it returned, or the error that it raised."""

    __slots__ = ("_result", "error")

    def __init__(self, job: Callable[[], T]) -> None:
        self.error: Exception | None = None
        self._result: list[T] = []
        try:
            self._result.append(job())
        except Exception as error:
            self.error = error

    @property
    def result(self) -> T:
        return self._result[0]


class DiskThread:
    """It begins when it is made. It is no reason for the process to go on."""

    def __init__(self, name: str, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], then: Callable[[Done[T]], object]) -> None:
        """Do a job after those before it, and then call `then` on the loop, if that still runs."""

        def do() -> None:
            done = Done(job)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(then, done)

        self._jobs.put(do)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def wait_for(self, job: Callable[[], T], within_s: float) -> Done[T] | None:
        """Do a job, and wait for it, but not longer. Returns None if it goes on."""
        ended: SimpleQueue[Done[T]] = SimpleQueue()
        self._jobs.put(lambda: ended.put(Done(job)))
        try:
            return ended.get(timeout=within_s)
        except Empty:
            return None

    def end(self, within_s: float) -> bool:
        """Wait until all jobs are done, but not longer. Return whether they are; the rest goes on."""
        self._jobs.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()
