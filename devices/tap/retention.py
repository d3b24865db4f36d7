"""Retention: the choice of finished files to delete, the oldest first, until size and age are in bounds.

Clocks of gateways step, and some begin at 1970 with each start. So what is oldest goes by which run of a
recorder finished a file last and by the numbers in it, and a file that was seen does not age by a step.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bus.errors import words_about
from capture.files import CAPTURE, boot_of, gateway_of, listed


class Limits(NamedTuple):
    """Bounds of a gateway's finished files: all their bytes, and the age of each in s. 0 is no limit."""

    keep_bytes: int = 0
    keep_s: float = 0.0


class Finished(NamedTuple):
    """A finished file, its size, and when it was finished, in seconds since 1970."""

    path: Path
    size_bytes: int
    finished_s: float


class Ages:
    """Since when files are there, by a clock that does not step (`time.monotonic`)."""

    def __init__(self) -> None:
        self._since: dict[Path, float] = {}

    def steady(self, found: list[Finished], now_s: float, steady_s: float) -> list[Finished]:
        """Return the files with times of the steady clock. `now_s`: by the clock of new ones."""
        ages = {one.path: max(0.0, now_s - one.finished_s) for one in found}
        self._since = {path: self._since.get(path, steady_s - age_s) for path, age_s in ages.items()}
        return [one._replace(finished_s=self._since[one.path]) for one in found]


def measured(root: Path, gateway: str) -> list[Finished]:
    """Return the finished files of a gateway, the oldest first."""
    return in_order(path for path in listed(root / CAPTURE) if gateway_of(path) == gateway)


def in_order(paths: Iterable[Path]) -> list[Finished]:
    """Return the files of one gateway that are there, the oldest first: the run that finished one last is
    the last."""
    found, last_s = list[Finished](), dict[str, float]()
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.stat()
            found.append(Finished(path, status.st_size, status.st_mtime))
            last_s[boot_of(path)] = max(status.st_mtime, last_s.get(boot_of(path), 0.0))
    return sorted(found, key=lambda one: (last_s[boot_of(one.path)], one.path.name))


def expired(found: list[Finished], limits: Limits, now_s: float) -> list[Finished]:
    """Choose the files to delete. The newest stays, however large it is."""
    excess = sum(file.size_bytes for file in found) - limits.keep_bytes if limits.keep_bytes else 0
    gone = []
    for file in found[:-1]:
        if excess > 0 or (limits.keep_s and now_s - file.finished_s > limits.keep_s):
            gone.append(file)
            excess -= file.size_bytes
    return gone


def retain(root: Path, gateway: str, limits: Limits, ages: Ages) -> tuple[int, str]:
    """Delete expired files, and the directories that this leaves empty. Return the number of files, and the
    first error or "". A file that cannot be deleted stays, and keeps none of the others."""
    deleted, fault = 0, ""
    steady_s = time.monotonic()
    found = ages.steady(measured(root, gateway), time.time(), steady_s)
    for file in expired(found, limits, steady_s):
        try:
            remove(file.path)
        except OSError as error:
            fault = fault or words_about(file.path, error)
        else:
            deleted += 1
    return deleted, fault


def remove(path: Path) -> None:
    """Delete a finished file, and the directories of its gateway and day if they are empty then."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
        path.parent.parent.rmdir()
