"""The processor time and the memory that a process has taken so far."""

import re
import time
from pathlib import Path

from benchmarks.systems import BenchError


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a process so far, exact: the ticks of /proc are 10 ms."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED of <linux/posix-timers.h>


def memory_mib(pid: int, kind: str = "Rss") -> float:
    """Return the resident memory of a process, or the kind that `smaps_rollup` names so (proc(5)).

    Raises `BenchError` if the process has ended.
    """
    return _mib(pid, "smaps_rollup", kind)


def peak_mib(pid: int) -> float:
    """Return the most memory that was resident of a process. Raises `BenchError` if it has ended."""
    return _mib(pid, "status", "VmHWM")


def _mib(pid: int, file: str, field: str) -> float:
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except OSError as error:
        raise BenchError(f"process {pid} has ended: see its log in build/bench") from error
    if found is None:
        raise BenchError(f"process {pid} has ended: see its log in build/bench")
    return int(found[1]) / 1024
