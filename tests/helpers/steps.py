"""Programs that are killed at one of their steps.

A test kills dozens of them. So one process has imported what they need, and each begins as a fork of it: an
import of Arrow costs more than all that such a program does.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

LIMIT_S: Final = 60.0
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["tests.helpers.steps", "pyarrow.parquet", "capture.delta", "capture.tables", "devices.upload.uploader"]
)


class Stepping:
    """A process that runs a function with `words` and a function `step`, at which it waits to be let on."""

    def __init__(self, program: Callable[..., None], *words: str) -> None:
        """`program`: a function of a module that can be imported, which gets the words, and `step` last."""
        self._ours, theirs = _CONTEXT.Pipe()
        self._stays = False
        self._process = _CONTEXT.Process(target=_run, args=(program, words, theirs))
        self._process.start()
        theirs.close()

    def reach(self, number: int) -> None:
        """Let it come to a step, counted from 1, and leave it there, unless it ends before."""
        try:
            for _ in range(number - 1):
                self._let_on()
            self._ours.recv()
            self._stays = True
        except EOFError:
            pass

    def kill(self) -> int | None:
        """Kill it. Returns its status."""
        self._process.kill()
        return self._ended()

    def finish(self) -> int | None:
        """Let it go on to its end, from the step that it was to `reach`. Returns its status."""
        try:
            if self._stays:
                self._ours.send(None)
            while True:
                self._let_on()
        except EOFError:
            return self._ended()

    def _let_on(self) -> None:
        self._ours.recv()
        self._ours.send(None)

    def _ended(self) -> int | None:
        self._process.join(LIMIT_S)
        self._ours.close()
        return self._process.exitcode


KILLED: Final = -signal.SIGKILL
"""The status of a process that was killed."""


def told(owner: Any, name: str, step: Callable[[], None]) -> None:
    """Let a function come to a `step` before and after it works."""
    whole = getattr(owner, name)

    def call(*words: Any, **more: Any) -> Any:
        step()
        found = whole(*words, **more)
        step()
        return found

    setattr(owner, name, call)


def _run(program: Callable[..., None], words: tuple[str, ...], pipe: Connection) -> None:
    def step() -> None:
        pipe.send(None)
        pipe.recv()

    program(*words, step)
