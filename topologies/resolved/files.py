"""The state of files that a link reads when it is made: a file with another state has been renewed."""

import os
from collections.abc import Iterable
from contextlib import suppress

from bus.machine.touch import touching
from bus.transports.options import Tls

Stamp = tuple[int, int, int] | None
"""Inode, size in bytes and time of change in ns of a file; None if it cannot be found."""
KeyFiles = tuple[tuple[str, Stamp], ...]
"""The files of the keys of one trunk or broker, the one that signs first; none if nothing is signed."""


def stamped(files: Iterable[str]) -> KeyFiles:
    """Return files of keys with their stamps."""
    return tuple((file, _stamp(file)) for file in files)


def paths_of(keys: KeyFiles) -> tuple[str, ...]:
    """Return the paths of files of keys."""
    return tuple(file for file, _ in keys)


def certificates(tls: Tls | None) -> tuple[Stamp, ...]:
    """Return the stamps of the files that TLS settings name."""
    files = () if tls is None else (tls.ca_file, tls.cert_file, tls.key_file)
    return tuple(_stamp(file) for file in files if file)


def _stamp(file: str) -> Stamp:
    with suppress(OSError), touching(file):
        found = os.stat(file)
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None
