"""The file of a catalog's listed services, which survive a restart.

The event loop only notes that something changed. A thread writes all records to a new file, and then renames
it to the old one: so the file is always complete. Where it cannot be opened, its catalog runs without it, and
it is tried again: a directory may come later than the catalog.
"""

import logging
import os
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bus.errors import LinkError, words_of
from devices.disk import DiskThread, Done, FileLock

log = logging.getLogger("buscoupler.catalog")

PAUSE_S: Final = 0.25
"""The pause between two writes, in s: a crash of the machine loses at most the changes of this time."""

HEAD: Final = b"buscoupler catalog 1\n"
_BYTES_S: Final = 2 << 20  # no more is written, so that a flood of changes does not wear out a memory card
_AGAIN_S: Final = 2.0
_CLOSE_S: Final = 2.0


class Owner(NamedTuple):
    """The owner of a file of records. `snapshot()` returns the current ones; `restore(records)` gets those of
    a file that could be opened only later.

    `on_fault(why)` is called when nothing can be stored, and with "" when it can again.
    """

    snapshot: Callable[[], Iterable[bytes]]
    restore: Callable[[Sequence[bytes]], object]
    on_fault: Callable[[str], object]


class Records:
    """The file of one catalog: a line for each record.

    A file longer than `file_bytes` is refused.
    """

    def __init__(self, path: Path, name: str, file_bytes: int) -> None:
        self.path = path
        self._stored = self._faults = 0
        self._name, self._file_bytes = name, file_bytes
        self._changed = self._writing = False
        self._fault = ""
        self._timer: TimerHandle | None = None
        self._thread: DiskThread | None = None
        self._opener: DiskThread | None = None  # tries again to open the file
        self._lock = FileLock(path)

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        return {"stored": self._stored, "record faults": self._faults}

    @property
    def is_open(self) -> bool:
        """Whether the file is open: its owner has the records."""
        return self._thread is not None

    def open(self, loop: AbstractEventLoop, owner: Owner) -> list[bytes]:
        """Return the stored records; none yet, with a fault, where the file cannot be opened.

        Raises `LinkError` if the file is not a catalog's, or another has it. Of a file that is open, `owner`
        is the next owner, who has all that the last one had.
        """
        self._loop, self._owner = loop, owner
        if self._thread is None:
            return self._begin(loop)
        owner.on_fault(self._fault)
        self.keep()
        return []

    def _begin(self, loop: AbstractEventLoop) -> list[bytes]:
        try:
            records = self._load()
        except LinkError as error:
            raise LinkError(f"{self.path}: {error}") from None
        except OSError as error:
            self._be(words_of(error))
            self._opener = DiskThread("catalog opener", loop)
            self._timer = loop.call_later(_AGAIN_S, self._try)
            return []
        self._thread = DiskThread("catalog records", loop)
        return records

    def _load(self) -> list[bytes]:
        """Make the file ours, and return what it holds."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.take()
            return self._read()
        except BlockingIOError:
            raise LinkError("another catalog stores its services there") from None
        except BaseException:
            self._lock.release()
            raise

    def _try(self) -> None:
        self._timer = None
        if self._opener is not None:
            self._opener.submit(self._load, self._tried)

    def _tried(self, done: Done[list[bytes]]) -> None:
        opener = self._opener
        if opener is None:
            return self._lock.release()  # closed meanwhile
        if done.error is not None:
            self._be(words_of(done.error))
            self._timer = self._loop.call_later(_AGAIN_S, self._try)
            return None
        self._thread, self._opener = opener, None
        self._be("")
        self._owner.restore(done.result)
        return self.keep()

    def _read(self) -> list[bytes]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            data = file.read(self._file_bytes + 1)
        if not data.startswith(HEAD) or len(data) > self._file_bytes:
            raise LinkError("is not the file of a catalog: choose another path, or move it away")
        return data.splitlines()[1:]

    def keep(self) -> None:
        """Store the records soon: they have changed."""
        self._changed = True
        if self._timer is None and not self._writing and self._opener is None:
            self._after(PAUSE_S)

    def _after(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._thread is None or not self._changed:
            return
        data = self._data()
        self._writing = True
        self._thread.submit(lambda: self._put(data), self._written)

    def _data(self) -> bytes:
        self._changed = False
        return HEAD + b"".join(record + b"\n" for record in self._owner.snapshot())

    def _put(self, data: bytes) -> int:
        made = self.path.with_name(f".{self.path.name}.new")
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        with open(file, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(file)
        os.replace(made, self.path)
        return len(data)

    def _written(self, done: Done[int]) -> None:
        self._writing = False
        if done.error is None:
            self._stored += 1
            self._be("")
            self._go_on(max(PAUSE_S, done.result / _BYTES_S))
        else:
            self._faults += 1
            self._be(words_of(done.error))
            self._changed = True
            self._go_on(_AGAIN_S)

    def _go_on(self, seconds: float) -> None:
        if self._thread is not None:
            self._after(seconds)

    def _be(self, fault: str) -> None:
        if fault != self._fault:
            log.warning("%s: %s: %s", self._name, self.path, fault or "services are stored again")
            self._fault = fault
            self._owner.on_fault(fault)

    def close(self) -> None:
        """Write the last changes, and wait for that within a bound. Idempotent."""
        thread, self._thread = self._thread, None
        opener, self._opener = self._opener, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # it may be opened again
        if opener is not None and opener.end(_CLOSE_S):
            self._lock.release()
        if thread is None:
            return
        if self._changed:
            data = self._data()
            thread.submit(lambda: self._put(data), lambda _: None)
        if not thread.end(_CLOSE_S):
            log.warning("%s: %s: the last changes may be lost: the disk is too slow", self._name, self.path)
        self._lock.release()
