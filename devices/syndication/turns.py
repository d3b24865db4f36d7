"""Turns of work: clients with much to do share an event loop, which runs between two turns."""

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final, Protocol

TURN_S: Final = 0.001


class Worker(Protocol):
    """A client with work to do in turns. Workers are told apart by identity."""

    def work(self, until_s: float) -> bool:
        """Work until `until_s` of `time.monotonic`, or a step longer. Return whether all work is done."""


class Turns:
    """Gives the workers turns of `turn_s` seconds, round robin, until their work is done.

    `after` is called at the end of each turn.
    """

    def __init__(self, after: Callable[[], None], turn_s: float = TURN_S) -> None:
        self._after, self._turn_s = after, turn_s
        self._line: dict[Worker, None] = {}
        self._loop: AbstractEventLoop | None = None
        self._called = False

    def __len__(self) -> int:
        return len(self._line)

    @property
    def is_open(self) -> bool:
        """Return whether turns are given."""
        return self._loop is not None

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to give turns."""
        self._loop = loop

    def give(self, worker: Worker) -> None:
        """Give a worker its first turn now. The worker must not be waiting for a turn."""
        done = worker.work(time.monotonic() + self._turn_s)
        if not done and self._loop is not None:
            self._line[worker] = None
        self._after()
        self._call()

    def _call(self) -> None:
        if self._line and not self._called and self._loop is not None:
            self._called = True
            self._loop.call_soon(self._next)

    def drop(self, worker: Worker) -> None:
        """Give a worker no more turns. No error if it waits for none."""
        self._line.pop(worker, None)

    def _next(self) -> None:
        self._called = False
        worker = next(iter(self._line), None)
        if worker is not None:
            del self._line[worker]
            self.give(worker)

    def close(self) -> None:
        """Give no more turns. Idempotent."""
        self._line.clear()
        self._loop = None
