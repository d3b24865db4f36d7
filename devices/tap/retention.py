"""Retention: the choice of finished files to delete, the oldest first, until size and age are in bounds."""

import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bus.errors import words_about
from capture.files import CAPTURE, gateway_of, listed


class Limits(NamedTuple):
    """Bounds of a gateway's finished files: all their bytes, and the age of each in s. 0 is no limit."""

    keep_bytes: int = 0
    keep_s: float = 0.0


class Finished(NamedTuple):
    """A finished file, its size, and when it was finished, in seconds since 1970."""

    path: Path
    size_bytes: int
    finished_s: float


def measured(root: Path, gateway: str) -> list[Finished]:
    """Return the finished files of a gateway, the oldest first."""
    found = []
    for path in listed(root / CAPTURE):
        if gateway_of(path) == gateway:
            with suppress(FileNotFoundError):
                status = path.stat()
                found.append(Finished(path, status.st_size, status.st_mtime))
    return found


def expired(found: list[Finished], limits: Limits, now_s: float) -> list[Finished]:
    """Choose the files to delete. The newest stays, however large it is."""
    excess = sum(file.size_bytes for file in found) - limits.keep_bytes if limits.keep_bytes else 0
    gone = []
    for file in found[:-1]:
        if excess > 0 or (limits.keep_s and now_s - file.finished_s > limits.keep_s):
            gone.append(file)
            excess -= file.size_bytes
    return gone


def retain(root: Path, gateway: str, limits: Limits) -> tuple[int, str]:
    """Delete expired files, and the directories that this leaves empty. Return the number of files, and the
    first error or "". A file that cannot be deleted stays, and keeps none of the others."""
    deleted, fault = 0, ""
    for file in expired(measured(root, gateway), limits, time.time()):
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
