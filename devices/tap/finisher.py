"""The finisher: what the writer has closed becomes capture files, and the oldest of these go."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import uniform

from bus.backoff import Backoff
from bus.errors import words_of
from devices.tap.journal import is_free, leftovers
from devices.tap.names import NamesReader
from devices.tap.retention import Ages, Limits, retain

_AGAIN_S, _RETAIN_S = 1.0, 60.0


class Finisher(threading.Thread):
    """A thread that makes capture files of closed journals, and deletes the oldest files.

    A process of its own makes them, so that its memory is freed. When the writer ends, this process does.
    `files` and `deleted` count them, and `fault` says what went wrong in the last round.
    """

    def __init__(self, root: Path, gateway: str, limits: Limits, names: NamesReader) -> None:
        super().__init__(daemon=True)
        self.root, self.gateway = root, gateway
        self.limits, self.ages, self.names = limits, Ages(), names
        self.files = self.deleted = 0
        self.fault = ""
        self.ending = False
        self.wake = threading.Event()

    def run(self) -> None:
        pauses, pause_s = Backoff(_AGAIN_S, _RETAIN_S, uniform), _RETAIN_S
        while True:
            self.wake.wait(pause_s)
            ending = self.ending
            self.wake.clear()
            self.work()
            if ending:
                return
            if not self.fault:
                pauses.reset()
            pause_s = pauses.next_s() if self.fault else _RETAIN_S

    def work(self) -> None:
        """Store names, finish files and delete files, once. Each is done also if another fails."""
        faults = [_fault_of(step) for step in (self.names.store, self._finish, self._retain)]
        self.fault = next(filter(None, faults), "")

    def _finish(self) -> str:
        if not any(_may_be_free(path) for path in leftovers(self.root, self.gateway)):
            return ""
        made, fault = self._finish_here() if self.ending else self._finish_apart()
        self.files += made
        return fault

    def _retain(self) -> str:
        deleted, fault = retain(self.root, self.gateway, self.limits, self.ages)
        self.deleted += deleted
        return fault

    def _finish_here(self) -> tuple[int, str]:
        from devices.tap.finish import finish_all

        return finish_all(self.root, self.gateway)

    def _finish_apart(self) -> tuple[int, str]:
        """Return the number of files made, and the error or "". Raises `OSError`."""
        words = [sys.executable, "-P", "-m", "devices.tap.finish", str(self.root), self.gateway]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            return 0, f"the process that makes capture files ended with status {done.returncode}"
        made, fault = json.loads(done.stdout)
        return made, fault


def _may_be_free(path: Path) -> bool:
    try:
        return is_free(path)
    except OSError:
        return True  # to finish it says what is wrong with it


def _fault_of(step: Callable[[], str | None]) -> str:
    """Return the fault that a step of work returns or raises; "" if there is none."""
    try:
        return step() or ""
    except (OSError, ValueError, KeyError) as error:
        return words_of(error)
