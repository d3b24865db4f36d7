"""The spool of an upload: files that wait, as second names (hard links) of finished capture files.

What a recorder deletes meanwhile, or compaction replaces, still waits here. `taken.json` says which rows were
taken ever: they are not taken again. Needs pyarrow.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from capture import ranges
from capture.files import CaptureError, boot_of, days_directory, listed
from capture.locks import reading
from capture.parquet import sync
from capture.ranges import Ranges
from capture.tables import wanted
from devices.tap.retention import measured, remove

UPLOAD: Final = "upload"
_TAKEN: Final = "taken.json"
_MAKING: Final = ".making"


class Spool:
    """The spool of one upload, below the recorder's directory `root`. Only one process at a time has it.

    In files: `dropped` because there was no more room, `damaged` and therefore left where they are.
    """

    def __init__(self, root: Path, name: str, gateway: str, limit_bytes: int) -> None:
        self.root, self.days = root, days_directory(root)
        self.gateway, self.limit_bytes = gateway, limit_bytes
        self.dropped = self.damaged = 0
        self.directory = root / UPLOAD / name
        self._making = self.directory / _MAKING
        self._held: Ranges = {}
        self._stored: Ranges | None = None
        self._known: Mapping[Path, int] = {}

    def open(self) -> bool:
        """Begin with what is there. Returns False if another process has the spool.

        Raises `OSError` or `CaptureError`.
        """
        self._making.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            return False
        for path in self._making.iterdir():
            path.unlink()
        waiting = list(map(ranges.of_path, self.waiting()))
        self._held = ranges.together([_read(self.directory / _TAKEN), *waiting])
        return True

    def close(self) -> None:
        """Leave the spool to another process."""
        os.close(self._lock)

    def waiting(self) -> list[Path]:
        """List the files that wait, the oldest first."""
        return listed(self.directory)

    def look(self) -> None:
        """Take the finished files that are new. Raises `OSError`."""
        if not self.days.is_dir():
            return
        with reading(self.days):
            found = {one.path: one.size_bytes for one in measured(self.root, self.gateway)}
            for path in sorted(found, key=lambda path: path.name):
                if self._known.get(path) != found[path]:
                    self._take(path)
        self._known = found
        self._forget({int(boot_of(path)) for path in (*found, *self.waiting())})

    def _take(self, path: Path) -> None:
        try:
            found, mine = wanted(path, self._held, self._making)
        except CaptureError:
            self.damaged += path.exists()
            return
        if found is not None:
            target = self.directory / path.parent.parent.name / path.parent.name / found.name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(found, target)
            except FileNotFoundError:
                return  # the recorder has deleted it just now
            sync(target.parent)
            if found is not path:
                found.unlink()
        self._held = ranges.together((self._held, mine))

    def _forget(self, boots: set[int]) -> None:
        """Store which rows were taken, of runs that still have a file here: others cannot come again."""
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
        """Give up the oldest files until the rest fits; `busy` is being stored, and stays."""
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
        """Return the files that wait, the oldest first, with their sizes in bytes."""
        return {path: path.stat().st_size for path in self.waiting()}

    def done(self, path: Path) -> None:
        """Delete a file that need not wait any more."""
        remove(path)

    def place(self, path: Path) -> str:
        """Return the name of a waiting file in the place where it goes."""
        return path.relative_to(self.directory).as_posix()


def _read(path: Path) -> Ranges:
    """Read which rows were taken. A file that is missing or damaged says none: they are then stored again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return ranges.joined((int(boot), first, last) for boot, some in found.items() for first, last in some)
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
