"""The process of an upload: it takes finished capture files into its spool, and stores them from there.

`python -m devices.upload.uploader SETTINGS`. It reports its state on its output, a JSON object a line. It
ends when its input ends; a file that is half stored then begins again at the next start. It ignores signals
for the gateway.
"""

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import uniform
from typing import Any, NamedTuple

from bus.backoff import Backoff
from bus.errors import words_of
from capture.files import CaptureError, names_directory
from capture.stores import Store, store_of
from capture.tables import add_names
from devices.child import hide_pandas
from devices.upload.spool import Spool, SpoolGone

_RETRY_MIN_S, _RETRY_MAX_S = 1.0, 60.0
_STATUS_S = 0.5
_END_S = 5.0  # the wait for a file that is being stored when the gateway ends
_NICE = 10


class Settings(NamedTuple):
    """The settings of the upload `name` on `gateway`."""

    name: str
    gateway: str
    directory: str
    to: str
    spool_bytes: int
    every_s: float


class Storing(threading.Thread):
    """A thread that stores the waiting files, the oldest first, with retries. `lock` guards the spool.

    Files that could not be stored are tried after the others, those that failed most often last.
    """

    def __init__(self, settings: Settings, spool: Spool) -> None:
        super().__init__(daemon=True)
        self.settings, self.spool = settings, spool
        self.lock, self.wake = threading.Lock(), threading.Event()
        self.files = self.bytes = 0
        self.fault = ""
        self.busy: Path | None = None
        self.ending = False
        self._store: Store | None = None
        self._names_ns = 0
        self._failures: dict[Path, int] = {}  # how often each file that waits has failed

    def run(self) -> None:
        pauses = Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        while not self.ending:
            self.wake.clear()
            before = self.files
            self.work()
            if self.files > before or not self.fault:
                pauses.reset()
            if not self.ending:
                self.wake.wait(pauses.next_s() if self.fault else None)

    def work(self) -> None:
        """Store the file of names, and the waiting files until one fails. Neither stops the other."""
        faults = [_fault_of(self._add_names), _fault_of(self._store_files)]
        self.fault = faults[1] or faults[0]

    @property
    def failing(self) -> bool:
        """Whether a file that waits could not be stored."""
        return bool(self._failures)

    def _there(self) -> Store:
        self._store = self._store or store_of(self.settings.to)
        return self._store

    def _store_files(self) -> None:
        """Store the waiting files, until one fails. Raises its error."""
        while not self.ending and (path := self._next()) is not None:
            try:
                self._store_file(path)
            except BaseException:
                self._failures[path] = self._failures.get(path, 0) + 1
                raise
            finally:
                self.busy = None

    def _next(self) -> Path | None:
        with self.lock:
            waiting = self.spool.waiting()
            self._failures = {path: self._failures[path] for path in waiting if path in self._failures}
            self.busy = min(waiting, key=lambda path: self._failures.get(path, 0), default=None)
            return self.busy

    def _store_file(self, path: Path) -> None:
        size_bytes = path.stat().st_size
        self._there().put(path, self.spool.place(path))
        with self.lock:
            self.spool.done(path)
            self.files += 1
            self.bytes += size_bytes
            self._failures.pop(path, None)
            if not self._failures:
                self.fault = ""

    def _add_names(self) -> None:
        path = names_directory(self.spool.days) / f"{self.settings.gateway}.txt"
        changed_ns = path.stat().st_mtime_ns if path.exists() else 0
        if changed_ns != self._names_ns:
            add_names([path], self._there())
            self._names_ns = changed_ns


def _fault_of(work: Callable[[], None]) -> str:
    """Do a piece of work, and return its fault; "" if there is none. Nothing may end the thread unseen."""
    try:
        work()
    except Exception as error:
        return words_of(error)
    return ""


class Uploader:
    """A run of the uploader's process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        root = Path(settings.directory)
        self.spool = Spool(root, settings.name, settings.gateway, settings.spool_bytes)
        self.storing = Storing(settings, self.spool)
        self.fault = ""
        self.told, self.opened = "", False
        self.looked_s = float("-inf")

    def run(self) -> None:
        """Run until the input ends, and up to `_END_S` longer if a file is being stored."""
        while not select.select([0], [], [], _STATUS_S)[0] or os.read(0, 1 << 16):
            self._turn(time.monotonic())
        self.storing.ending = True
        self.storing.wake.set()
        if self.storing.is_alive():
            self.storing.join(_END_S)

    def _turn(self, now_s: float) -> None:
        try:
            if not self.opened:
                self._open()
            elif now_s - self.looked_s >= self.settings.every_s:
                self.looked_s = now_s
                self._look()
        except (CaptureError, OSError) as error:
            self.fault = words_of(error)
            if isinstance(error, SpoolGone):  # all that is still in the capture is stored again
                self.spool.close()
                self.opened, self.looked_s = False, float("-inf")
        self._tell()

    def _open(self) -> None:
        self.opened = self.spool.open()
        self.fault = "" if self.opened else f"{self.spool.directory}: another process has this spool"
        if self.opened and not self.storing.is_alive():
            self.storing.start()

    def _look(self) -> None:
        self.spool.look()
        with self.storing.lock:
            self.spool.bound(self.storing.busy)
        self.fault = ""
        if not self.storing.failing:  # else it waits for its retry
            self.storing.wake.set()

    def _tell(self) -> None:
        """Report the state if it has changed. A report that the pipe cannot take is dropped."""
        words = json.dumps(self._report())
        if words != self.told:
            self.told = words
            with contextlib.suppress(OSError):
                os.write(1, words.encode() + b"\n")

    def _report(self) -> dict[str, Any]:
        storing, spool = self.storing, self.spool
        fault = self.fault or storing.fault
        with storing.lock:
            sizes = spool.sizes()
            counts = {"files": storing.files, "bytes": storing.bytes}
        return {
            "state": "waiting" if fault else "up",
            "fault": fault,
            "counts": {**counts, "waiting": len(sizes), "waiting_bytes": sum(sizes.values())},
            "rejected": {"spool full": spool.dropped, "damaged": spool.damaged, "deleted": spool.deleted},
        }


def main(words: list[str]) -> None:
    """Run the program. `words` has one element, the settings in JSON."""
    hide_pandas()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    os.set_blocking(1, False)
    Uploader(Settings(**json.loads(words[0]))).run()
    os._exit(0)  # a store that hangs must not keep the process


if __name__ == "__main__":
    main(sys.argv[1:])
