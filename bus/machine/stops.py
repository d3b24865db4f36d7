"""Stops of this process: time in which it had no turn although no other program kept it from having one.

A process that waits for a processor is late; one that was stopped (SIGSTOP, a paused machine) was not there.
The kernel tells them apart: it counts how long the main thread ran, and how long it waited for its turn
(/proc/PID/schedstat, proc_pid_schedstat(5)).
"""

import os
import resource
from functools import lru_cache
from typing import Final, NamedTuple

FAULT_S: Final = 0.05
"""The time that a slow disk takes for a page of our memory, as a rule."""


class Turns(NamedTuple):
    """Counts of the kernel for the main thread: seconds running and waiting for a turn, together,
    and how often the process waited for its own memory to come from a disk."""

    had_s: float
    faults: int


def turns() -> Turns | None:
    """Return the counts up to now; None where the kernel does not count."""
    if (file := _opened(os.getpid())) is None:
        return None
    try:
        ran, waited, _ = os.pread(file, 100, 0).split()
    except (OSError, ValueError):
        return None
    return Turns((int(ran) + int(waited)) / 1e9, resource.getrusage(resource.RUSAGE_SELF).ru_majflt)


@lru_cache(1)
def _opened(process: int) -> int | None:
    """Open the counts of this process, and leave them open: a look at them is then three times as fast."""
    try:
        return os.open(f"/proc/{process}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def stopped_s(late_s: float, before: Turns | None, now: Turns | None) -> float:
    """Return the part of a lateness, in seconds, that turns and faults between two looks do not explain.

    It is 0 in doubt.
    """
    if before is None or now is None:
        return 0.0
    return max(0.0, late_s - (now.had_s - before.had_s) - FAULT_S * (now.faults - before.faults))
