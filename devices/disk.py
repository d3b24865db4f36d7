"""A thread for work that may block, such as writing files, and locks on files."""

import fcntl
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class FileLock:
    """A lock on a file `PATH.lock`, by which one device at a time uses the file at a path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> None:
        """Take the lock. Raises `BlockingIOError` if another process has it, and other `OSError`."""
        self._descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock. The lock file stays. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class Done(Generic[T]):
    """The outcome of a job: its `result`, or the `error` that it raised."""

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
        """The value that the job returned. There must be no `error`."""
        return self._result[0]


class DiskThread:
    """A daemon thread that runs jobs in order. It starts when it is made."""

    def __init__(self, name: str, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], then: Callable[[Done[T]], object]) -> None:
        """Queue a job. Afterwards `then(outcome)` is called on the loop, unless the loop is closed."""

        def do() -> None:
            done = Done(job)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(then, done)

        self._jobs.put(do)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def wait_for(self, job: Callable[[], T], within_s: float) -> Done[T] | None:
        """Queue a job and block until it ends, at most `within_s` seconds. Return None if it still runs."""
        ended: SimpleQueue[Done[T]] = SimpleQueue()
        self._jobs.put(lambda: ended.put(Done(job)))
        try:
            return ended.get(timeout=within_s)
        except Empty:
            return None

    def end(self, within_s: float) -> bool:
        """Take no more jobs, and wait up to `within_s` seconds for the queued ones. Return whether all ended.

        Jobs that are left go on in the thread.
        """
        self._jobs.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()
