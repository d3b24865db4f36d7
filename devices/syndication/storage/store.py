"""The store of a syndication broker's producers, whose metadata survive a restart (docs/syndication.md).

The event loop only notes changes. A thread writes them, many in one transaction, and of several changes of
one producer only the last. A failure is logged once, and the write is retried; then all entries are written
anew.
"""

import logging
import random
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from bus.backoff import Backoff
from bus.errors import LinkError, why_of, words_of
from devices.disk import DiskThread, Done, FileLock
from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import TROUBLE, Database, DatabaseError, Stored, words

log = logging.getLogger("buscoupler.syndication")

PAUSE_S: Final = 0.25
"""The shortest time between two transactions, in s."""

# The most that is written, so that a flood of changes does not wear out a memory card.
_BYTES_S: Final = 4 << 20
_ENTRY_BYTES: Final = 100  # of an entry, without its metadata
_CLOCK_S: Final = 60.0  # between two writes of the file's clock when nothing changes
_LOCK_S: Final = 1.0  # how long the loop waits for a stuck disk at the start
_LATE_S: Final = 5.0  # how long the owner waits for the stored producers
_CLOSE_S: Final = 2.0

OnFault = Callable[[str], object]
Restore = Callable[[Stored, float], object]
"""A function that takes a stored producer, and the time when it went, by `time.monotonic`."""


class Owner(NamedTuple):
    """The owner of a store: it has each stored producer restored, and has all entries to store.

    `ready` is called once: when all are restored, at the first failure, or after some seconds.
    `on_fault(fault)` is called when the store's fault changes.
    """

    restore: Restore
    entries: Callable[[], list[Entry]]
    ready: Callable[[], object]
    on_fault: OnFault


class Store:
    """A `Keeper` that writes to a file. It notes changes at once, and writes from `open` on.

    `fault` says why nothing is stored now, or "". `counts` has the numbers of entries written, of rows left
    out when the file was read, and of failures. After a failure the store retries; `again_s` has the first
    and the longest pause. `pause_s` is the shortest pause after a transaction.
    """

    def __init__(
        self,
        path: Path,
        bounds: Bounds,
        name: str,
        again_s: tuple[float, float] = (1.0, 60.0),
        pause_s: float = PAUSE_S,
    ) -> None:
        self.path, self.fault = path, ""
        self.counts = {"stored": 0, "unread": 0, "store faults": 0}
        self._database, self._name = Database(path, bounds), name
        self._pending: dict[str, Entry | None] = {}
        self._most = 2 * bounds.producers
        self._anew = False  # the pending changes are not all: write every entry
        self._idle = self._loaded = self._is_ready = False
        self._clock_s = 0.0  # the file's clock when the monotonic one was 0
        self._backoff, self._pause_s = Backoff(*again_s, random.uniform), pause_s
        self._thread: DiskThread | None = None
        self._timer: TimerHandle | None = None
        self._lock = FileLock(path)

    @property
    def idle(self) -> bool:
        """True if all changes are in the file, and the pause after them is over."""
        return self._idle

    @property
    def waiting(self) -> int:
        """The number of changes that wait for the next transaction, unless all entries are written anew."""
        return len(self._pending)

    def keep(self, entry: Entry) -> None:
        """Store an entry in place of the producer's last one."""
        self._note(entry.id, entry)

    def forget(self, id: str) -> None:
        """Delete the entry of a producer."""
        self._note(id, None)

    def _note(self, id: str, entry: Entry | None) -> None:
        if self._anew:
            return
        if len(self._pending) >= self._most and id not in self._pending:
            self.renew()
        else:
            self._pending[id] = entry
        if self._idle:
            self._idle = False
            self._after(0.0, self._write)

    def renew(self) -> None:
        """Write every entry with the next transaction, and note no changes until then."""
        self._anew = True
        self._pending.clear()

    def open(self, loop: AbstractEventLoop, owner: Owner) -> None:
        """Begin to read, the longest gone first, and to write. Raises `LinkError` if another broker has it.

        Of a store that is open, `owner` is the next owner, to whom it goes on to restore: it knows what the
        last one knew.
        """
        self._loop, self._owner = loop, owner
        if self._thread is None:
            self._is_ready = False
            return self._begin(loop)
        if self.fault:
            owner.on_fault(self.fault)
        if self._is_ready:
            owner.ready()
        if self._idle:
            self._write()
        return None

    def _begin(self, loop: AbstractEventLoop) -> None:
        thread = DiskThread("syndication store", loop)
        lock = thread.wait_for(self._take_lock, _LOCK_S)
        if lock is not None and lock.error is not None:
            thread.end(0.0)
            raise LinkError(f"{self.path}: {why_of(lock.error)}") from lock.error
        self._thread = thread
        self._late = loop.call_later(_LATE_S, self._be_late)
        self._reopen()

    def _take_lock(self) -> None:
        """Take the lock of brokers. Opening the file reports other errors, unless it is one without locks."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except BlockingIOError as error:
            raise DatabaseError("another syndication broker stores its producers there") from error
        except OSError:
            return

    def _submit(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Let the thread do a job, then continue with its result. A failure opens the file again later."""
        if self._thread is not None:
            self._thread.submit(job, lambda done: self._done(done, then))

    def _done(self, done: Done[Any], then: Callable[[Any], None]) -> None:
        if self._thread is None:
            return
        if done.error is None:
            then(done.result)
        else:
            self._failed(done.error)

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, call)

    def _reopen(self) -> None:
        self._submit(self._database.open, self._opened)

    def _opened(self, ran_s: float) -> None:
        self._clock_s = ran_s - time.monotonic()
        if self._loaded:
            self._be_ready()
            self._write()
        else:
            self._read(ran_s)

    def _read(self, ran_s: float) -> None:
        self._submit(lambda: self._database.rows(ran_s), lambda rows: self._took(ran_s, *rows))

    def _took(self, ran_s: float, rows: list[Stored], unread: int) -> None:
        """Restore some rows, and read on in a later turn of the loop."""
        self.counts["unread"] += unread
        opened_s = ran_s - self._clock_s
        for row in rows:
            self._owner.restore(row, opened_s - row.age_s)
        if rows or unread:
            return self._read(ran_s)
        self._loaded = True
        if unread := self.counts["unread"]:
            log.warning(
                "%s: %s: %d rows are left out: no client can have said them", self._name, self.path, unread
            )
        self._write()
        return self._be_ready()

    def _be_late(self) -> None:
        if self._loaded:
            return
        if not self.fault:  # else that is told
            log.warning("%s: %s: what is stored is still being read", self._name, self.path)
        self._be_ready()

    def _be_ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._owner.ready()

    def _write(self) -> None:
        """Write the pending changes, and the clock of the file."""
        self._submit(self._writing(), lambda sizes: self._written(*sizes))

    def _writing(self) -> Callable[[], tuple[int, int]]:
        """Return a job that writes the pending changes, and returns the number of entries and their bytes."""
        anew, clock_s = self._anew, self._clock_s
        changes: dict[str, Entry | None] = self._pending
        if anew:
            changes = {entry.id: entry for entry in self._owner.entries()}
        self._pending, self._anew, self._idle = {}, False, False
        ran_s = time.monotonic() + clock_s

        def job() -> tuple[int, int]:
            self._database.write(ran_s, _by_clock(changes, clock_s), anew)
            return len(changes), sum(_ENTRY_BYTES + len(entry.packed) for entry in changes.values() if entry)

        return job

    def _adding(self) -> Callable[[], object]:
        """Return a job that adds what came to a file that has not been read to its end."""
        changes: Mapping[str, Entry | None] = self._pending
        if self._anew:  # what was forgotten since then stays in the file
            changes = {entry.id: entry for entry in self._owner.entries()}

        def job() -> None:
            clock_s = self._database.open() - time.monotonic()  # it may not have been opened yet
            self._database.write(time.monotonic() + clock_s, _by_clock(changes, clock_s), anew=False)

        return job if changes else _nothing

    def _written(self, count: int, size_bytes: int) -> None:
        self.counts["stored"] += count
        if self.fault:
            log.warning("%s: %s: metadata are stored again", self._name, self.path)
            self._be("")
        self._backoff.reset()
        self._after(max(self._pause_s, size_bytes / _BYTES_S), self._go_on)

    def _go_on(self) -> None:
        if self._pending or self._anew:
            return self._write()
        self._idle = True
        return self._after(_CLOCK_S, self._write)

    def _failed(self, error: Exception) -> None:
        """Log the failure, if it is new, and retry later with all entries of the owner."""
        fault = words(error) if isinstance(error, TROUBLE) else f"{type(error).__name__}: {words_of(error)}"
        if fault != self.fault:
            log.warning(
                "%s: %s: metadata are not stored: %s; will go on trying", self._name, self.path, fault
            )
            self._be(fault)
        self.counts["store faults"] += 1
        self.renew()
        self._after(self._backoff.next_s(), self._reopen)
        self._be_ready()

    def _be(self, fault: str) -> None:
        self.fault = fault
        self._owner.on_fault(fault)

    def close(self) -> None:
        """Write the pending changes, and wait for that within a bound: the disk may be stuck. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._late.cancel()
        if self._timer is not None:
            self._timer.cancel()
        ended: list[Done[None]] = []
        last = self._last()
        thread.submit(lambda: ended.append(Done(last)), _nothing)
        if not thread.end(_CLOSE_S):
            log.warning("%s: %s: the last changes may be lost: the disk is too slow", self._name, self.path)
        elif ended[0].error is not None and not self.fault:
            log.warning("%s: %s: the last changes are lost: %s", self._name, self.path, words(ended[0].error))
        self._lock.release()

    def _last(self) -> Callable[[], None]:
        """Return the last job of the thread: write, and close the file."""
        write: Callable[[], object] = _nothing
        if not self.fault:
            write = self._writing() if self._loaded else self._adding()

        def job() -> None:
            try:
                write()
            finally:
                self._database.close()

        return job


def _by_clock(changes: Mapping[str, Entry | None], clock_s: float) -> dict[str, Entry | None]:
    """Return entries with their times by the clock that shows `clock_s` when the broker's shows 0."""
    return {id: entry and entry.by(clock_s) for id, entry in changes.items()}


def _nothing(*_: object) -> None: ...
