"""Temporary directories that nobody leaves for ever.

A killed process removes nothing. So each directory is locked by the process that made it, and by the child
that it gives the descriptor to; whoever makes the next removes those of his own user that nobody has locked.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

PREFIX: Final = "buscoupler-"
_LOCKED: Final = ".locked"
"""The end of a name, from when the directory has its lock: one without it is left alone."""


class Scratch:
    """A temporary directory with the path `name`, until `close` or the end of the process.

    `what` is a part of its name, and `place` the directory that it is in. A child that has `descriptor` keeps
    the directory as long as it runs. Raises `OSError` if it cannot be made.
    """

    def __init__(self, what: str = "", place: str | None = None, prefix: str = PREFIX) -> None:
        place = tempfile.gettempdir() if place is None else place
        sweep(Path(place), prefix)
        made = tempfile.mkdtemp(prefix=f"{prefix}{what}", dir=place)
        self.name = f"{made}{_LOCKED}"
        self.descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        os.rename(made, self.name)
        self._end = weakref.finalize(self, _remove, self.name, self.descriptor, os.getpid())

    def close(self) -> None:
        """Remove the directory with all that is in it. Idempotent."""
        self._end()

    def __enter__(self) -> str:
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


def sweep(place: Path, prefix: str = PREFIX) -> None:
    """Remove the directories of this user that no process has locked. What cannot be removed stays."""
    for path in place.glob(f"{prefix}*{_LOCKED}"):
        with suppress(OSError):
            _sweep_one(path)


def _sweep_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _remove(name: str, descriptor: int, process: int) -> None:
    if os.getpid() == process:  # a fork has the descriptor too, and no right to the directory
        shutil.rmtree(name, ignore_errors=True)
    os.close(descriptor)
