"""Signals that end a command, and its exit status then: 128 and the number, as shells have it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_IGNORED: Final = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # `nohup` says: go on
STOPS: Final = (signal.SIGINT, signal.SIGTERM, *(() if _IGNORED else (signal.SIGHUP,)))
"""The signals that end a command in order; SIGHUP too, when its terminal is gone. `run` reloads then."""

_AGAIN_S: Final = 0.02


class Terminated(KeyboardInterrupt):
    """The exception of SIGTERM. It ends a command as Ctrl-C does: everything that is open is closed."""


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM within the block, unless that signal has a handler. Lose no interrupt."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_none_lost())
        with contextlib.suppress(ValueError):  # off the main thread there are no signals
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, _terminate)
                stack.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        yield


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextlib.contextmanager
def _none_lost() -> Iterator[None]:
    """Send a signal again if its exception was raised within a finalizer, where Python discards it."""
    timers = list[threading.Timer]()

    def again(lost: "UnraisableHookArgs") -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
            return
        number = status_of(lost.exc_value) - 128
        timers[:] = [threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))]
        timers[0].start()

    before, sys.unraisablehook = sys.unraisablehook, again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:  # a signal after the end would kill the process
            timer.cancel()
            timer.join()


def status_of(stop: KeyboardInterrupt | int) -> int:
    """Return the exit status of a command that a signal ended early.

    `stop` is its exception or its number.
    """
    if isinstance(stop, int):
        return 128 + stop
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
