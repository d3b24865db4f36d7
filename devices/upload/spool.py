"""The spool of an upload: hard links to finished capture files that wait. Needs pyarrow.

A file waits here even if the recorder deletes it meanwhile, or compaction replaces it. `taken.json` lists the
rows that were ever taken, so that none is taken twice.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bus.machine.files import is_at
from capture import ranges
from capture.files import CaptureError, boot_of, days_directory, listed
from capture.locks import reading
from capture.parquet import sync
from capture.ranges import Ranges
from capture.tables import wanted
from devices.tap.retention import in_order, measured, remove

UPLOAD: Final = "upload"
_TAKEN: Final = "taken.json"
_MAKING: Final = ".making"


class SpoolGone(OSError):
    """A spool whose directory was deleted or moved away while it was open."""


class Spool:
    """The spool of one upload, below the recorder's directory `root`. One process at a time has it.

    `dropped` counts files given up for lack of room, `damaged` those that cannot be read: they are left where
    they are, or given up if they wait here. `deleted` counts those that somebody took from it.
    """

    def __init__(self, root: Path, name: str, gateway: str, limit_bytes: int) -> None:
        self.root, self.days = root, days_directory(root)
        self.gateway, self.limit_bytes = gateway, limit_bytes
        self.dropped = self.deleted = 0
        self._waits: set[Path] = set()
        self._damaged: set[str] = set()
        self.directory = root / UPLOAD / name
        self._making = self.directory / _MAKING
        self._held: Ranges = {}
        self._stored: Ranges | None = None
        self._known: Mapping[Path, int] = {}

    @property
    def damaged(self) -> int:
        """The number of damaged files that were seen, each once."""
        return len(self._damaged)

    def open(self) -> bool:
        """Open the spool with its waiting files. Return False if another process has it.

        Raises `OSError` or `CaptureError`.
        """
        self._making.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            return False
        try:
            for path in self._making.iterdir():
                path.unlink()
            self._held = ranges.together([_read(self.directory / _TAKEN), *self._waiting_ranges()])
            self._stored, self._known, self._waits = None, {}, set(self.waiting())
        except BaseException:
            self.close()
            raise
        return True

    def _waiting_ranges(self) -> Iterator[Ranges]:
        """Yield the rows of the waiting files. One that is damaged is given up."""
        for path in self.waiting():
            try:
                yield ranges.of_path(path)
            except CaptureError:
                self._damaged.add(self.place(path))
                self.done(path)

    def close(self) -> None:
        """Release the spool."""
        os.close(self._lock)

    def waiting(self) -> list[Path]:
        """Return the waiting files, the oldest first."""
        return [one.path for one in in_order(listed(self.directory))]

    def look(self) -> None:
        """Take new finished files into the spool. Raises `OSError`, after it has taken those that it can.

        Raises `SpoolGone` if the spool is no more where it was: close it then.
        """
        self._check()
        if not self.days.is_dir():
            return
        faults = list[OSError]()
        with reading(self.days):
            found = {one.path: one.size_bytes for one in measured(self.root, self.gateway)}
            for path in list(found):
                if self._known.get(path) != found[path]:
                    try:
                        self._take(path)
                    except OSError as fault:
                        faults.append(fault)
                        del found[path]  # it is new the next time
        self._known = found
        self._forget({int(boot_of(path)) for path in (*found, *self.waiting())})
        if faults:
            raise faults[0]

    def _check(self) -> None:
        """Count the files that were deleted, and raise `SpoolGone` if all were."""
        # A file is listed before it is there, and until it is to go: another thread may just be done with it.
        went = [path for path in list(self._waits) if not path.exists() and path in self._waits]
        self._waits.difference_update(went)
        self.deleted += len(went)
        if not is_at(self._lock, self.directory):
            what = f"the spool was deleted or moved away, with {len(went):,} files that waited"
            raise SpoolGone(f"{what}: {self.directory}")

    def _take(self, path: Path) -> None:
        try:
            found, mine = wanted(path, self._held, self._making)
        except CaptureError:
            if path.exists():
                self._damaged.add(path.relative_to(self.days).as_posix())
            return
        if found is not None:
            target = self.directory / path.parent.parent.name / path.parent.name / found.name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._waits.add(target)
            try:
                os.link(found, target)
            except OSError as error:
                self._waits.discard(target)
                if isinstance(error, FileNotFoundError):
                    return  # the recorder has just deleted it
                raise
            sync(target.parent)
            if found is not path:
                found.unlink()
        self._held = ranges.together((self._held, mine))

    def _forget(self, boots: set[int]) -> None:
        """Store the taken rows of runs that still have a file: rows of other runs cannot come again."""
        self._held = {boot: some for boot, some in self._held.items() if boot in boots}
        if self._held == self._stored:
            return
        aside = self._making / _TAKEN
        with aside.open("w", encoding="utf-8") as file:
            json.dump({str(boot): some for boot, some in self._held.items()}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.directory / _TAKEN)
        self._stored = self._held

    def bound(self, busy: Path | None) -> None:
        """Drop the oldest files until the rest fits. `busy`, which is being stored, stays."""
        sizes = self.sizes()
        excess = sum(sizes.values()) - self.limit_bytes
        for path, size_bytes in sizes.items():
            if excess <= 0:
                return
            if path != busy:
                excess -= size_bytes
                self.done(path)
                self.dropped += 1

    def sizes(self) -> dict[Path, int]:
        """Return the waiting files with their sizes in bytes, the oldest first."""
        return {path: path.stat().st_size for path in self.waiting()}

    def done(self, path: Path) -> None:
        """Delete a file from the spool."""
        self._waits.discard(path)
        remove(path)

    def place(self, path: Path) -> str:
        """Return the name of a waiting file in the store."""
        return path.relative_to(self.directory).as_posix()


def _read(path: Path) -> Ranges:
    """Return the taken rows in a file; none if it is missing or damaged: rows are then stored again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return ranges.joined((int(boot), first, last) for boot, some in found.items() for first, last in some)
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
