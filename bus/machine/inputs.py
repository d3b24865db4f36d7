"""Files that a user names as the input of a command: also pipes and devices, which may have nothing yet.

To open a pipe that nobody writes into takes for ever, and so does reading from a device that says nothing.
So these are opened at once, and somebody who waits for them is told.
"""

import errno
import logging
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO, Final

SILENT_S: Final = 2.0
"""The time without any input after which this is told."""
_KINDS: Final = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device"}

log = logging.getLogger("buscoupler")


def open_input(path: str | Path) -> int:
    """Open a file for reading, and return its descriptor, which does not block. Raises `OSError`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return fd


def silence_of(fd: int, name: str | Path) -> str:
    """Return in words that nothing has come from a pipe or a device yet; "" for a file that has all."""
    kind = _KINDS.get(stat.S_IFMT(os.fstat(fd).st_mode))
    return f"{name}: nothing has come from this {kind} yet; will go on waiting" if kind else ""


def opened(path: str | Path) -> BinaryIO:
    """Open a file for reading as soon as it has something, or has ended. Raises `OSError`.

    After `SILENT_S` without anything the log says so.
    """
    fd = open_input(path)
    try:
        if words := silence_of(fd, path):
            _wait(fd, words)
        os.set_blocking(fd, True)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def _wait(fd: int, words: str) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(SILENT_S * 1000):
        log.warning("%s", words)
        poll.poll()
