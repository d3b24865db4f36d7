"""How long a test may wait: the time in which what it waits for had a processor, and not that without one.

A machine with much to do gives a process its turns late, by seconds or by minutes in all. That is no fault of
a test, and a longer limit would only move it. The kernel tells of each thread for how long it could have run
and had no turn; what hangs could not run, so its limit comes as soon as ever.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

SLICE_S: Final = 5.0
"""How often the kernel is asked at least: what has ended since then tells nothing any more."""
SLICES: Final = 12
"""In how many parts a limit passes at least."""
_PROC: Final = Path("/proc")


class Turns(NamedTuple):
    """For how long a thread ran, and for how long it could have run and had no turn."""

    ran_s: float
    late_s: float


def turns(process: int, proc: Path = _PROC) -> dict[int, Turns]:
    """Return the turns of all threads of a process, and of all that it has started, so far."""
    found = dict[int, Turns]()
    for thread in _threads(process, proc):
        with suppress(OSError, ValueError):  # it has ended, or this kernel does not tell
            ran_ns, late_ns, _ = map(int, (thread / "schedstat").read_text().split())
            found[int(thread.name)] = Turns(ran_ns / 1e9, late_ns / 1e9)
    return found


def _threads(process: int, proc: Path) -> Iterator[Path]:
    """Yield the directories of all threads of a process and of its children."""
    with suppress(OSError):
        for thread in (proc / str(process) / "task").iterdir():
            yield thread
            with suppress(OSError):
                for child in (thread / "children").read_text().split():
                    yield from _threads(int(child), proc)


class Patience:
    """What is left of the limit of one thing that a test waits for."""

    def __init__(self, limit_s: float, proc: Path = _PROC) -> None:
        self.left_s, self._slice_s = limit_s, min(SLICE_S, limit_s / SLICES)
        self._proc, self._seen = proc, dict[int, Turns]()

    @property
    def next_s(self) -> float:
        """The time after which it is to be told that this has passed."""
        return min(self._slice_s, self.left_s)

    def is_over(self, passed_s: float) -> bool:
        """Return whether nothing is left, now that so much more time has passed."""
        found = turns(os.getpid(), self._proc)
        waited_s = max((self._waited_s(*one, passed_s) for one in found.items()), default=0.0)
        self._seen = found
        self.left_s -= max(passed_s - waited_s, 0.0)
        return self.left_s <= self._slice_s / 1000

    def _waited_s(self, thread: int, now: Turns, passed_s: float) -> float:
        """Return for how long a thread had no turn meanwhile. One that was not seen before may follow others
        that have ended, which had as many."""
        if thread in self._seen:
            return now.late_s - self._seen[thread].late_s
        return passed_s * now.late_s / max(now.ran_s + now.late_s, 1e-9)
