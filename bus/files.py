"""The reading of files that users name: keys, tokens, certificates, lists of names and passwords.

A FIFO, a directory or a device is refused at once. A file of a network that hangs can still block its reader,
so nothing here runs on an event loop (`bus.aside`).
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SECRET_BYTES_MAX: Final = 1 << 16
"""More than any key, token or password has."""
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_touched: dict[int, str] = {}


class NotAFile(OSError):
    """A path that leads to something else than a regular file, or to one that is too long."""


@contextmanager
def touching(path: str) -> Iterator[None]:
    """Note that this thread is about to use a file, for `touched`."""
    thread = threading.get_ident()
    before = _touched.get(thread)
    _touched[thread] = path
    try:
        yield
    finally:
        if before is None:
            _touched.pop(thread, None)
        else:
            _touched[thread] = before


def touched(thread: int | None) -> str:
    """Return the file that a thread uses now, "" for none."""
    return _touched.get(thread or 0, "")


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a regular file for reading, and yield its descriptor. Raises `OSError`."""
    with touching(path):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            kind = stat.S_IFMT(os.fstat(file).st_mode)
            if kind != stat.S_IFREG:
                raise NotAFile(f"it is {_KINDS.get(kind, 'no file')}, and must be a regular file")
            yield file
        finally:
            os.close(file)


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
