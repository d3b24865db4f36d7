"""The memory of a journal: which numbers of other journals came, so that each message comes once."""

import os
import re
from collections.abc import Iterable
from typing import Final

from bus.journal.files import Files
from bus.journal.notes import RECEIVED, Notes
from bus.journal.ranges import RangeSet

RANGES_MAX: Final = 256
"""Ranges of numbers that are remembered of one journal."""
JOURNALS_MAX: Final = 1024
"""Journals that are remembered: then the one that was known first is forgotten."""
_NAME: Final = re.compile("[0-9a-f]{16}")


class Memory:
    """The memory in a directory. `assumed` counts numbers that it takes for known although they never came,
    because it has no room for the gap: these are the smallest ones."""

    def __init__(self, files: Files, directory: str) -> None:
        self._notes = Notes(files, os.path.join(directory, RECEIVED))
        self.assumed = 0
        self._is_owed = False

    def open(self) -> None:
        """Read what is noted. Raises `OSError`."""
        self._notes.open()
        self._notes.remove([name for name in self._notes.sets if not _NAME.fullmatch(name)])

    def add(self, journal: int, first: int, last: int) -> None:
        """Remember numbers of a journal; `sync` puts them on disk. Raises `OSError`."""
        name, sets = f"{journal:016x}", self._notes.sets
        if name not in sets and len(sets) >= JOURNALS_MAX:
            self._notes.remove([next(iter(sets))])
        while not self._notes.add(name, first, last, RANGES_MAX):
            low, high = sets[name].close_smallest()
            self.assumed += high - low + 1

    def remember(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """Remember numbers of journals, on disk. Raises `OSError`: the next call tries again.

        Numbers that are in a record of this journal are on disk already (`Journal.append`).
        """
        for journal, first, last in ranges:
            if not self.known(journal).covers(first, last):
                self.add(journal, first, last)
                self._is_owed = True
        if self._is_owed:
            self.sync()

    def known(self, journal: int) -> RangeSet:
        """Return the numbers of a journal that came: a set to read, not to change."""
        return self._notes.sets.get(f"{journal:016x}") or RangeSet()

    def all_known(self) -> dict[int, RangeSet]:
        """Return the numbers of all journals that came, as they are now."""
        return {int(name, 16): held.copy() for name, held in self._notes.sets.items()}

    def sync(self) -> None:
        """Put all on disk. Raises `OSError`."""
        self._notes.sync()
        self._is_owed = False

    def close(self) -> None:
        """Close the file, without writing."""
        self._notes.close()
