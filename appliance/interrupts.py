"""Signals that end a command, and its exit status then: 128 and the number, as shells have it."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: what it opened is closed."""


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM, unless somebody handles that signal."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ValueError):  # off the main thread there are no signals
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, _terminate)
                stack.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        yield


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def status_of(stop: KeyboardInterrupt | int) -> int:
    """Return the exit status of a command that a signal, by its exception or number, ended too early."""
    if isinstance(stop, int):
        return 128 + stop
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
