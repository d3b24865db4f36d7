"""The reserve of a journal: room on its disk for what must be noted before a full one can be freed."""

import os
from contextlib import suppress
from typing import Final

from bus.journal.files import Files

RESERVE: Final = "reserve"
RESERVE_BYTES: Final = 64 * 1024
"""More than the notes about a segment take, as a rule. They are random: a disk may store zeros in no room."""

_TRIAL_BYTES: Final = 4096


class Reserve:
    """A file in a directory that takes room. Without it a journal works too, until its disk is full."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files, self._path = files, os.path.join(directory, RESERVE)

    def take(self) -> None:
        """Take the room, if the disk has it and it is not taken."""
        directory, name = os.path.split(self._path)
        with suppress(OSError):
            if self._files.listing(directory).get(name) == RESERVE_BYTES:
                return
            try:
                self._fill(self._path, RESERVE_BYTES)
            except OSError:
                self._files.unlink(self._path)

    def try_out(self, size_bytes: int) -> None:
        """Write so much, and a little more, and take it back. Raises `OSError` if it has no room."""
        path = f"{self._path}.trial"
        try:
            self._fill(path, size_bytes + _TRIAL_BYTES)
        finally:
            with suppress(OSError):
                self._files.unlink(path)

    def _fill(self, path: str, size_bytes: int) -> None:
        file = self._files.open(path, create=True)
        try:
            self._files.pwrite(file, os.urandom(size_bytes), 0)
            self._files.sync(file)
        finally:
            self._files.close(file)

    def release(self) -> None:
        """Give the room back to the disk."""
        with suppress(OSError):
            self._files.unlink(self._path)
