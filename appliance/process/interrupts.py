"""Signals that end a command, and its exit status then: 128 and the number, as shells have it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_IGNORED: Final = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # `nohup` says: go on
STOPS: Final = (signal.SIGINT, signal.SIGTERM, *(() if _IGNORED else (signal.SIGHUP,)))
"""The signals that end a command in order; SIGHUP too, when its terminal is gone. `run` reloads then."""

_RAISED: Final = (signal.SIGINT, signal.SIGTERM)
_AGAIN_S: Final = 0.02


class Stopped(KeyboardInterrupt):
    """The exception of a signal of `STOPS`. It ends a command in order: everything that is open is closed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise `Stopped` at SIGINT and SIGTERM within the block, unless they have handlers. Lose no signal."""
    with _none_lost(), handled(_stop, [one for one in _RAISED if signal.getsignal(one) == signal.SIG_DFL]):
        yield


@contextlib.contextmanager
def handled(handler: Callable[[int, FrameType | None], object], numbers: Iterable[int]) -> Iterator[None]:
    """Let `handler` take signals within the block, on the main thread; elsewhere there are no signals."""
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                stack.callback(signal.signal, number, signal.signal(number, handler))
        yield


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Stopped(number)


def behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that led to an error: one within an import or a loop may come as another error."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


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
    if isinstance(stop, KeyboardInterrupt):
        stop = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    return 128 + stop
