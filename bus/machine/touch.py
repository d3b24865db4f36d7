"""The files and name servers that threads wait for, which may never answer (`aside`). See `touching`."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Touch(NamedTuple):
    """A file, or something else that may not answer, that a thread began to use at `since_s` (monotonic)."""

    what: str
    since_s: float


_touched: dict[int, list[Touch]] = {}


@contextmanager
def touching(what: str) -> Iterator[None]:
    """Note that this thread is about to use a file, or to look something up, for `touched`."""
    stack = _touched.setdefault(threading.get_ident(), [])
    stack.append(Touch(what, time.monotonic()))
    try:
        yield
    finally:
        stack.pop()
        if not stack:
            _touched.pop(threading.get_ident(), None)


def touched(thread: int | None) -> Touch | None:
    """Return what a thread waits for now, None for nothing."""
    stack = _touched.get(thread or 0)
    return stack[-1] if stack else None
