"""The files of a journal: all that a journal asks of the operating system.

A test gives `Files` of its own, such as a disk that forgets at a power cut what was not synced.
"""

import fcntl
import os
from pathlib import Path
from typing import Final, Protocol

from bus.machine.files import is_at

_BLOCK_BYTES: Final = 64 * 1024


class Files(Protocol):
    """The operations. Each raises `OSError`."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, if they are missing, so that they survive a power cut."""

    def listing(self, path: str) -> dict[str, int]:
        """Return the files of a directory by name, with the bytes of each."""

    def open(self, path: str, create: bool = False) -> int:
        """Return the descriptor of a file to read and write; `create` it empty, in place of an old one."""

    def lock(self, path: str) -> int:
        """Return the descriptor of a file that nobody else has locked; raise `BlockingIOError` if one has."""

    def pread(self, file: int, size_bytes: int, offset: int) -> bytes:
        """Return the bytes from an offset on; fewer only at the end of the file."""

    def pwrite(self, file: int, data: bytes, offset: int) -> None:
        """Write all of `data`."""

    def truncate(self, file: int, size_bytes: int) -> None:
        """Cut a file, or fill it up with zeros."""

    def sync(self, file: int) -> None:
        """Wait until all that was written to a file is on disk."""

    def close(self, file: int) -> None:
        """Close a descriptor."""

    def is_at(self, file: int, path: str) -> bool:
        """Return whether a path still is that of an open file: nobody deleted, moved or replaced it."""

    def rename(self, old: str, new: str) -> None:
        """Give a file the name of another, which is gone."""

    def unlink(self, path: str) -> None:
        """Remove a name; do nothing if it is gone."""

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on disk."""


class SystemFiles:
    """The files of this machine."""

    def make_directory(self, path: str) -> None:
        above, missing = Path(path), list[Path]()
        while not above.exists():
            missing.append(above)
            above = above.parent
        Path(path).mkdir(mode=0o750, parents=True, exist_ok=True)
        for made in missing:
            self.sync_directory(str(made.parent))

    def listing(self, path: str) -> dict[str, int]:
        with os.scandir(path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def open(self, path: str, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_TRUNC if create else 0)
        return os.open(path, flags, 0o640)

    def lock(self, path: str) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        return file

    def pread(self, file: int, size_bytes: int, offset: int) -> bytes:
        data = os.pread(file, size_bytes, offset)
        if len(data) in (0, size_bytes):
            return data
        parts = [data]
        while data and (left := size_bytes - sum(map(len, parts))):
            data = os.pread(file, left, offset + size_bytes - left)
            parts.append(data)
        return b"".join(parts)

    def pwrite(self, file: int, data: bytes, offset: int) -> None:
        written, view = 0, memoryview(data)
        while written < len(data):
            written += os.pwrite(file, view[written:], offset + written)

    def truncate(self, file: int, size_bytes: int) -> None:
        os.ftruncate(file, size_bytes)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def is_at(self, file: int, path: str) -> bool:
        return is_at(file, path)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def sync_directory(self, path: str) -> None:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def replace(files: Files, path: str, data: bytes) -> None:
    """Write a file aside, sync it, and give it its name: a power cut leaves the old or the new one."""
    aside = f"{path}.new"
    file = files.open(aside, create=True)
    try:
        files.pwrite(file, data, 0)
        files.sync(file)
    finally:
        files.close(file)
    files.rename(aside, path)
    files.sync_directory(os.path.dirname(path))


def read_all(files: Files, path: str, most_bytes: int) -> bytes | None:
    """Return the bytes of a file, at most so many; None if there is none."""
    try:
        file = files.open(path)
    except FileNotFoundError:
        return None
    data = bytearray()
    try:
        while block := files.pread(file, min(_BLOCK_BYTES, most_bytes - len(data)), len(data)):
            data += block
    finally:
        files.close(file)
    return bytes(data)


def has_name(files: Files, path: str) -> bool:
    """Return whether there is a file of this name. Raises `OSError` if nobody can say."""
    try:
        files.close(files.open(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
