"""The names beside a capture: files with the names by which its tokens are shown, one for each gateway.

A name's token is its hash, so names of several gateways never contradict each other: all are taken together.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bus.errors import why_of
from bus.machine.files import text_of
from bus.machine.inputs import opened
from bus.machine.partial import replacing
from bus.names import lines_of, names_from
from bus.text import lines_in
from capture.files import NAMES, CaptureError, names_directory

FILE_BYTES: Final = 16 << 20
"""A larger file of names is not read, and begins anew when names are added."""

_FILES: Final = "[!.]*.txt"


def beside(days: Path) -> list[int | str]:
    """Return all names beside the capture files of the directory `days`. Raises `CaptureError`."""
    return [name for path in listed(days) for name in read(path)]


def listed(days: Path) -> list[Path]:
    """List the files of names beside the capture files of the directory `days`."""
    return sorted(names_directory(days).glob(_FILES))


def given(word: str) -> list[int | str]:
    """Return the names that a word stands for: a file, a directory with captures, or a list `a,b,c`.

    Raises `CaptureError` or `TokenError`.
    """
    if not word:
        raise CaptureError("no name is in an empty word: write a file, or a list like fridge,temp")
    path = Path(word)
    if path.is_dir():
        return [name for file in sorted(path.rglob(f"{NAMES}/{_FILES}")) for name in read(file)]
    if path.exists() or path.suffix == ".txt":
        return read(path, is_given=True)
    if "/" in word:
        raise CaptureError(f"{word}: there is no such file (names in a list have commas: fridge,temp)")
    return names_from(word.split(","))


def read(path: Path, is_given: bool = False) -> list[int | str]:
    """Read a file of names, one a line; of one that is too long, none, unless it `is_given` by a user.

    Raises `CaptureError`.
    """
    try:
        return names_from(_lines(path, is_given))
    except OSError as error:
        raise CaptureError(f"{path}: cannot read the names: {why_of(error)}") from None
    except ValueError as error:
        raise CaptureError(f"{path}: {error}") from None


def add(days: Path, gateway: str, names: Iterable[str]) -> bool:
    """Add names to the file of a gateway; return whether one was new. Raises `OSError` or
    `CaptureError`."""
    directory = names_directory(days)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{gateway}.txt"
    with _locked(directory):
        old = list(_known(path))
        known = set(old)
        new = [line for line in lines_of(names) if line not in known]
        if new:
            with replacing(path) as aside:
                aside.write_text("".join(f"{line}\n" for line in [*old, *new]), encoding="utf-8")
    return bool(new)


def _known(path: Path) -> Iterator[str]:
    """Yield the lines of a file that there may be. Raises `OSError`, and `CaptureError` if it is no text."""
    try:
        if path.exists():
            yield from _lines(path)
    except ValueError as error:
        raise CaptureError(f"{path}: {error}") from None


def _lines(path: Path, is_given: bool = False) -> Iterator[str]:
    with opened(path) as file:  # maybe a pipe or a device, which do not tell their size
        data = file.read(FILE_BYTES + 1)
    if len(data) <= FILE_BYTES:
        yield from lines_in(text_of(data))
    elif is_given:
        raise ValueError(f"a file of names has at most {FILE_BYTES} bytes")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, because several recorders may write there."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
