"""The limits of the control groups of this process: the least of all from its own up to the root.

A container takes its own group for the root; a unit of systemd (CPUQuota=, MemoryMax=) has a path below it.
Source: cgroups(7), version 2.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def memory_allowed_bytes(root: Path = _ROOT, own: Path = _OWN) -> float:
    """Return how much memory this process may have; infinite without a limit."""
    return min((limit for limit, *_ in _limits("memory.max", root, own)), default=inf)


def processors_allowed(root: Path = _ROOT, own: Path = _OWN) -> float:
    """Return how many processors this process may keep busy all the time; infinite without a limit."""
    return min((share / period for share, period in _limits("cpu.max", root, own)), default=inf)


def _limits(name: str, root: Path, own: Path) -> Iterator[tuple[int, ...]]:
    """Yield the numbers in the file `name` of each group that has a limit."""
    for group in _groups(root, own):
        with suppress(OSError, ValueError):  # no such file, or "max"
            if numbers := tuple(map(int, (group / name).read_text().split())):
                yield numbers


def _groups(root: Path, own: Path) -> list[Path]:
    """Return the directories of the groups of this process, the root first."""
    path = ""
    with suppress(OSError):
        lines = os.fsdecode(own.read_bytes()).split("\n")
        path = next((line[3:] for line in lines if line.startswith("0::")), "")
    parts = [part for part in path.split("/") if part]
    return [root.joinpath(*parts[:count]) for count in range(len(parts) + 1)]
