"""Journals: files of rows that are not in a capture file yet, and that survive a torn tail. Needs pyarrow.

A journal is an Arrow IPC stream (lz4) of whole batches, appended and synced. Its writer locks it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from bus.machine.files import is_at
from capture.batches import NEXT, batches_of
from capture.files import JOURNAL_SUFFIX, boot_of, journal_directory, name_of
from capture.schema import META_TOPOLOGY


class Vanished(OSError):
    """A journal that is no more where it was: somebody deleted or moved it while it was being written."""


class Journal:
    """An open journal. `add` encodes a batch; `sync` writes all added batches, and can be called again.

    `rows` are those that are written.
    """

    def __init__(self, directory: Path, name: str, schema: pa.Schema) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"{name}{JOURNAL_SUFFIX}"
        self._file = _create(self._path)
        self._sink = BytesIO()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._stream = pa.ipc.new_stream(self._sink, schema, options=options)
        self.size_bytes = self.rows = self._added = 0

    def add(self, batch: pa.RecordBatch, next_number: int) -> None:
        """Encode a batch. `next_number` is the ring's first record that is not in it."""
        self._stream.write_batch(batch, custom_metadata={NEXT: str(next_number)})
        self._added += batch.num_rows

    def sync(self) -> None:
        """Append and sync. Raises `OSError`: the file is then unchanged, and the next call writes it all.

        After `Vanished` it would write where nobody can read.
        """
        self.check()
        data = self._sink.getvalue()
        try:
            self._append(data)
        except OSError:
            os.ftruncate(self._file, self.size_bytes)
            raise
        self._sink.seek(0)
        self._sink.truncate()
        self.size_bytes += len(data)
        self.rows, self._added = self.rows + self._added, 0

    def check(self) -> None:
        """Raise `Vanished` if the file is no more where it was; `OSError` if nobody can say."""
        if not is_at(self._file, self._path):
            what = f"the journal was deleted or moved away, with {self.rows:,} rows"
            raise Vanished(f"{what}: {self._path}")

    def _append(self, data: bytes) -> None:
        written, view = 0, memoryview(data)
        while written < len(data):
            written += os.pwrite(self._file, view[written:], self.size_bytes + written)
        os.fsync(self._file)

    def close(self) -> None:
        """Release the lock, so that the file can be finished."""
        os.close(self._file)


def _create(path: Path) -> int:
    """Create an empty, locked file. Try again if another process meanwhile deleted it as a leftover.

    A file that already has this name has no whole batch: otherwise the next row would have another number.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            os.ftruncate(file, 0)
            return file
        os.close(file)


def leftovers(root: Path, gateway: str) -> list[Path]:
    """List the journals of `gateway`, oldest first, those being written included."""
    return sorted(journal_directory(root, gateway).glob(f"*{JOURNAL_SUFFIX}"))


@contextmanager
def claimed(path: Path) -> Iterator[int | None]:
    """Lock a journal, and yield its descriptor; None if a process writes it, or it is gone.

    Raises `OSError`.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield file if _locks(file) else None
    finally:
        os.close(file)


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: Path) -> bool:
    """Return whether a journal exists and no process writes it. Raises `OSError`."""
    with claimed(path) as file:
        return file is not None


class Resumed(NamedTuple):
    """The end of what journals have: the numbers of the next record and the next row, and the topology (JSON)
    that the last rows were recorded under, "" if that is not known."""

    record: int = 0
    row: int = 0
    topology: str = ""


def resume(root: Path, gateway: str, boot: int) -> Resumed:
    """Find where the journals of this run of a recorder end. Raises `OSError`."""
    found = Resumed()
    for path in leftovers(root, gateway):
        if boot_of(path) == name_of(boot, 0).partition("-")[0]:
            for batch, next_number in batches_of(path):
                topology = (batch.schema.metadata or {}).get(META_TOPOLOGY.encode(), b"").decode()
                found = Resumed(next_number, batch["cap_seq"][-1].as_py() + 1, topology)
    return found
