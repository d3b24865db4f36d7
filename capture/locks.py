"""Locks on a capture: files stay where they are while somebody reads them, and one at a time merges them."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def reading(days: Path) -> Iterator[None]:
    """Keep files where they are in the block: compaction waits for its end. Of a directory that has gone,
    there are none."""
    with ExitStack() as held:
        with suppress(FileNotFoundError):
            held.enter_context(_locked(days, fcntl.LOCK_SH, lambda: None))
        yield


@contextmanager
def alone(days: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Wait until nobody is `reading`, and keep others from it in the block."""
    with _locked(days, fcntl.LOCK_EX, on_wait):
        yield


@contextmanager
def merging(day: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Keep other compactions from the directory of a day in the block."""
    with _locked(day, fcntl.LOCK_EX, on_wait):
        yield


@contextmanager
def _locked(days: Path, how: int, on_wait: Callable[[], None]) -> Iterator[None]:
    directory = os.open(days, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(directory, how | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(directory, how)
        yield
    finally:
        os.close(directory)
