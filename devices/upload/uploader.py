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
from pathlib import Path
from random import uniform
from typing import Any, NamedTuple

from bus.backoff import Backoff
from bus.errors import words_of
from capture.files import CaptureError, names_directory
from capture.stores import Store, store_of
from capture.tables import add_names
from devices.child import hide_pandas
from devices.upload.spool import Spool

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
    """A thread that stores the waiting files, the oldest first, with retries. `lock` guards the spool."""

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

    def run(self) -> None:
        pauses = Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        while not self.ending:
            self.wake.clear()
            try:
                more = self._work()
            except (CaptureError, OSError) as error:
                self.fault = words_of(error)
                self.wake.wait(pauses.next_s())
                continue
            self.fault = ""
            pauses.reset()
            if not more and not self.ending:
                self.wake.wait()

    def _work(self) -> bool:
        """Store the file of names, and one waiting file. Return whether there was one."""
        self._store = self._store or store_of(self.settings.to)
        self._add_names(self._store)
        with self.lock:
            path = self.busy = next(iter(self.spool.waiting()), None)
        if path is None:
            return False
        size_bytes = path.stat().st_size
        self._store.put(path, self.spool.place(path))
        with self.lock:
            self.spool.done(path)
            self.busy = None
            self.files += 1
            self.bytes += size_bytes
        return True

    def _add_names(self, store: Store) -> None:
        path = names_directory(self.spool.days) / f"{self.settings.gateway}.txt"
        changed_ns = path.stat().st_mtime_ns if path.exists() else 0
        if changed_ns != self._names_ns:
            add_names([path], store)
            self._names_ns = changed_ns


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
        if self.opened:
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
        self._tell()

    def _open(self) -> None:
        self.opened = self.spool.open()
        self.fault = "" if self.opened else f"{self.spool.directory}: another process has this spool"
        if self.opened:
            self.storing.start()

    def _look(self) -> None:
        self.spool.look()
        with self.storing.lock:
            self.spool.bound(self.storing.busy)
        self.fault = ""
        if not self.storing.fault:  # else it waits for its retry
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
            "rejected": {"spool full": spool.dropped, "damaged": spool.damaged},
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
