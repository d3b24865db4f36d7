"""The reserve of a journal: room on its disk for what must be noted before a full one can be freed."""

import os
from contextlib import suppress
from typing import Final

from bus.journal.files import Files

RESERVE: Final = "reserve"
RESERVE_BYTES: Final = 64 * 1024
"""More than the notes about a segment take, as a rule. They are random: a disk may store zeros in no room."""


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
                self._fill()
            except OSError:
                self._files.unlink(self._path)

    def _fill(self) -> None:
        file = self._files.open(self._path, create=True)
        try:
            self._files.pwrite(file, os.urandom(RESERVE_BYTES), 0)
            self._files.sync(file)
        finally:
            self._files.close(file)

    def release(self) -> None:
        """Give the room back to the disk."""
        with suppress(OSError):
            self._files.unlink(self._path)
