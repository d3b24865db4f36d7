"""The reading of files that users name: keys, tokens, certificates, lists of names and passwords.

A FIFO, a directory or a device is refused at once. A file of a network that hangs can still block its reader,
so nothing here runs on an event loop (`bus.aside`).
"""

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

SECRET_BYTES_MAX: Final = 1 << 16
"""More than any key, token or password has."""
CERTIFICATES_BYTES_MAX: Final = 1 << 22
"""More than the certificates of all authorities of a system have."""
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NotAFile(OSError):
    """A path that leads to something else than a regular file, or to one that is too long."""


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


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a regular file for reading, and yield its descriptor. Raises `OSError`."""
    with touching(path):
        _check_kind(os.stat(path).st_mode)  # before it is opened: that alone can make a device do something
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check_kind(os.fstat(file).st_mode)
            yield file
        finally:
            os.close(file)


def _check_kind(mode: int) -> None:
    kind = stat.S_IFMT(mode)
    if kind != stat.S_IFREG:
        raise NotAFile(f"it is {_KINDS.get(kind, 'no file')}, and must be a regular file")


def read_regular(path: str, most_bytes: int = SECRET_BYTES_MAX) -> bytes:
    """Return the content of a regular file of at most `most_bytes`. Raises `OSError`."""
    with opened(path) as file:
        return read_all(file, most_bytes)


def read_all(file: int, most_bytes: int = SECRET_BYTES_MAX) -> bytes:
    """Return what is left in an open file. Raises `NotAFile` if that is more than `most_bytes`."""
    data = bytearray()
    while len(data) <= most_bytes:
        more = os.read(file, min(1 << 20, most_bytes + 1 - len(data)))
        if not more:
            return bytes(data)
        data += more
    raise NotAFile(f"it has more than {most_bytes} bytes")


def check_regular(path: str) -> None:
    """Raise `OSError` for what cannot be read as a regular file."""
    with opened(path):
        pass
