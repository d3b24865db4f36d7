"""The consumers of a journal: what each has, what nobody gets any more, and what was counted.

Two notes: `acknowledged` has the numbers by consumer, and `counts` the rest. What a consumer lost is noted as
the set of its numbers, and before anything that follows from it, so that no restart counts a message twice.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from bus.journal.errors import JournalError
from bus.journal.files import Files
from bus.journal.notes import ACKNOWLEDGED, COUNTS, GONE, Notes
from bus.journal.ranges import RangeSet

FULL, EXPIRED, DAMAGED, EMPTIED = "journal full", "expired", "damaged", "emptied"
"""The reasons why a consumer does not get a message."""
ENDS_MAX: Final = 64
RANGES_MAX: Final = 4096
"""Ranges of numbers that are noted of one consumer; more is acknowledged when others join them."""
_REASONS: Final = (FULL, EXPIRED, DAMAGED)
_RUNNING, _END = "running_s", "end"


class Consumers:
    """The consumers with these `names`, of the journal in a directory."""

    def __init__(self, files: Files, directory: str, names: Iterable[str]) -> None:
        self._directory = directory
        self.names = list(dict.fromkeys(names))
        self._acknowledged = Notes(files, os.path.join(directory, ACKNOWLEDGED))
        self._counts = Notes(files, os.path.join(directory, COUNTS))

    def open(self) -> None:
        """Read what is noted. Raises `OSError`."""
        self._acknowledged.open()
        self._counts.open()

    def begin(self, first: int) -> None:
        """Forget who is not a consumer any more; new ones begin at the message `first`.

        A disk that takes nothing is left to later calls. Raises `JournalError`.
        """
        left = [name for name in self._acknowledged.sets if name != GONE and name not in self.names]
        for name in self.names:
            self.add(name, first)
        with suppress(OSError):
            self._acknowledged.remove(left)
            self.sync()

    def add(self, name: str, first: int) -> None:
        """Add a consumer, which begins at the message `first` if it is new. Raises `JournalError`."""
        if name not in self.names:
            self.names.append(name)
        if name not in self._acknowledged.sets:
            for low, high in ((0, first - 1), *self.gone):
                self._acknowledged.add(name, low, high)
        self.index(name)

    def forget(self, name: str) -> None:
        """Forget a consumer. Raises `OSError`."""
        if name in self.names:
            self.names.remove(name)
        self._acknowledged.remove([name])

    def of(self, name: str) -> RangeSet:
        """Return the numbers that a consumer has, or does not get."""
        return self._acknowledged.of(name)

    @property
    def gone(self) -> RangeSet:
        """The numbers that nobody gets any more."""
        return self._acknowledged.of(GONE)

    @property
    def highest(self) -> int:
        """The highest number that is noted; 0 without one."""
        lost = (held for key, held in self._counts.sets.items() if key.partition("/")[0] in _REASONS)
        return max((held.last for held in (*self._acknowledged.sets.values(), *lost)), default=0)

    def acknowledge(self, name: str, first: int, last: int) -> bool:
        """Note that a consumer has numbers, or is not to have them; return False if there is no room."""
        return self._acknowledged.add(name, first, last, RANGES_MAX)

    def have(self, first: int, last: int) -> bool:
        """Return whether all consumers have all numbers from `first` to `last`."""
        return all(self.of(name).covers(first, last) for name in self.names)

    def lose(self, first: int, last: int, reason: str) -> None:
        """Count what consumers lose with these numbers, which are gone. Raises `OSError`."""
        for name in self.names:
            key = f"{reason}/{name}"
            for low, high in self.of(name).missing(first, last):
                while not self._counts.add(key, low, high, RANGES_MAX):
                    self._counts.of(key).close_smallest()
            self._acknowledged.add(name, first, last)
        self._acknowledged.add(GONE, first, last)
        self._counts.sync()

    def empty(self, name: str, last: int) -> int:
        """Count as lost what a consumer lacks, up to `last`; return how many messages. Raises `OSError`."""
        missing = self.of(name).missing(0, last)
        for low, high in missing:
            while not self._counts.add(f"{EMPTIED}/{name}", low, high, RANGES_MAX):
                self._lost(name, EMPTIED).close_smallest()
        self._counts.sync()
        self._acknowledged.add(name, 0, last)
        self.sync()
        return sum(high - low + 1 for low, high in missing)

    def give_up(self, first: int, last: int) -> None:
        """Note, on disk, that these numbers are gone, because all have them. Raises `OSError`."""
        self._acknowledged.add(GONE, first, last)
        self.sync()

    @property
    def losses(self) -> dict[str, dict[str, int]]:
        """The messages that each consumer did not get, by reason, since the journal was made."""
        return {
            name: {why: self._lost(name, why).count for why in _REASONS} | self._emptied(name)
            for name in self.names
        }

    def _lost(self, name: str, reason: str) -> RangeSet:
        return self._counts.of(f"{reason}/{name}")

    def _emptied(self, name: str) -> dict[str, int]:
        count = self._lost(name, EMPTIED).count
        return {EMPTIED: count} if count else {}

    def index(self, name: str) -> int:
        """Return the bit of a consumer, which stays the same over restarts. Raises `JournalError`."""
        key = f"{_END}/{name}"
        if key not in self._counts.sets:
            self._counts.add(key, 1, self._free() + 1)
        return self._counts.of(key).count - 1

    def _free(self) -> int:
        """Return a bit that nobody had, else one of a consumer that is forgotten."""
        ends = {key: held.count - 1 for key, held in self._counts.sets.items() if key.startswith(f"{_END}/")}
        if free := sorted(set(range(ENDS_MAX)) - set(ends.values())):
            return free[0]
        for key, index in ends.items():
            if key.removeprefix(f"{_END}/") not in self.names:
                self._counts.remove([key])
                return index
        raise JournalError(f"the journal {self._directory} has more than {ENDS_MAX} ends: give it fewer")

    @property
    def running_s(self) -> int:
        """The time that was noted."""
        return self._counts.of(_RUNNING).count

    def note(self, running_s: int) -> None:
        """Note the time, and write what is not written yet. Raises `OSError`."""
        if running_s > self.running_s:
            self._counts.add(_RUNNING, 1, running_s)
        self.write()

    def write(self) -> None:
        """Write what is not written yet. Raises `OSError`."""
        self._counts.write()
        self._acknowledged.write()

    def sync(self) -> None:
        """Put all on disk. Raises `OSError`."""
        self._counts.sync()
        self._acknowledged.sync()

    def close(self) -> None:
        """Close the files, without writing."""
        self._acknowledged.close()
        self._counts.close()
