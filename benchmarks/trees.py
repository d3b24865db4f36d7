"""The memory of a process and of all that it has started, and of it the most, while it runs."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.systems import BenchError

EVERY_S: Final = 0.25


class Used(NamedTuple):
    """The cost of a command: seconds of the wall and of processors, the most memory of all its processes
    together in MiB, and the most until each mark, by mark."""

    wall_s: float
    cpu_s: float
    most_mib: float
    until: dict[float, float]


def tree(pid: int) -> Iterator[int]:
    """Yield a process and those that it has started, as long as they run."""
    yield pid
    for path in _files(pid, "task/*/children"):
        for child in _text(path).split():
            yield from tree(int(child))


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process and those that it has started, each page once (Pss)."""
    found = (
        re.search(r"^Pss:\s+(\d+) kB", _text(Path(f"/proc/{one}/smaps_rollup")), re.M) for one in tree(pid)
    )
    return sum(int(one[1]) for one in found if one) / 1024


def part_read(pid: int, path: Path) -> float:
    """Return which part of a file a process has read, by the place in the file; 0 if it has not opened it."""
    for link in _files(pid, "fd/*"):
        try:
            if link.samefile(path):
                place = re.search(r"^pos:\s+(\d+)", _text(Path(f"/proc/{pid}/fdinfo/{link.name}")), re.M)
                return int(place[1]) / path.stat().st_size if place else 0.0
        except OSError:
            continue
    return 0.0


def _files(pid: int, pattern: str) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}").glob(pattern))
    except OSError:
        return []


def _text(path: Path) -> str:
    """Return the text of a file of a process; "" if that has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def run(
    words: Sequence[str], marks: Sequence[float] = (), part: Callable[[int], float] = lambda pid: 0.0
) -> Used:
    """Run a command to its end, and return its cost. `part` says how far the process `pid` has come, in
    the unit of the marks. Raises `BenchError` if it fails."""
    begin, until, most_mib = time.perf_counter(), dict.fromkeys(marks, 0.0), 0.0
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        here, mib = part(process.pid), memory_mib(process.pid)
        most_mib = max(most_mib, mib)
        until |= {mark: max(most, mib) for mark, most in until.items() if here <= mark}
        time.sleep(EVERY_S)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"it ended with {process.returncode}: {' '.join(words)}")
    return Used(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, most_mib, until)
