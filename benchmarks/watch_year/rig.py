"""A watch as a user starts it, and what it takes: memory of its processes, files, and seconds a batch."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import memory_mib

LIMIT_S: Final = 300.0
_LOOK_S: Final = 0.02
_STILL_S: Final = 2.0
_QUERIES: Final = ("tables", "alerts")
_METASPACE: Final = re.compile(r"Metaspace\s+used (\d+)K")


class Watch:
    """A watch of a directory, which runs in the block, and its output."""

    def __init__(self, words: Sequence[str], directory: Path) -> None:
        self.output, self.scratch = directory / "out", directory / "scratch"
        self.log = directory / "watch.log"
        self.scratch.mkdir()
        self._words = [sys.executable, "-m", "buscoupler", "pipeline", "watch", *words]
        self._seen = 0
        self.batches_s: list[float] = []

    def __enter__(self) -> "Watch":
        env = {**os.environ, "SPARK_LOCAL_DIRS": str(self.scratch)}
        with self.log.open("wb") as log:
            command = [*self._words, "--output", str(self.output)]
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(LIMIT_S)

    def newest(self, query: str, log: str) -> int:
        """Return the number of the newest batch that a query has planned (`offsets`) or done (`commits`)."""
        directory = self.output / "checkpoint" / query / log
        return max((int(path.name) for path in directory.glob("[0-9]*")), default=-1)

    def until_planned(self, after: int) -> None:
        """Wait until a batch after this one has been planned; note how long those took that are done."""
        deadline = time.monotonic() + LIMIT_S
        while self.newest("tables", "offsets") <= after:
            self._check(deadline)
        self._note_times()

    def until_still(self) -> None:
        """Wait until everything that is there has been taken."""
        deadline, before, since_s = time.monotonic() + LIMIT_S, [0], time.monotonic()
        while time.monotonic() - since_s < _STILL_S:
            self._check(deadline)
            planned, done = (
                [self.newest(query, log) for query in _QUERIES] for log in ("offsets", "commits")
            )
            if planned != done or planned != before:
                before, since_s = planned, time.monotonic()
        self._note_times()

    def _check(self, deadline: float) -> None:
        if self.process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the watch has ended or stands still: {self.log.read_text()[-2000:]}")
        time.sleep(_LOOK_S)

    def _note_times(self) -> None:
        checkpoint = self.output / "checkpoint/tables"
        done = self.newest("tables", "commits")
        for number in range(self._seen, done + 1):
            planned, committed = checkpoint / f"offsets/{number}", checkpoint / f"commits/{number}"
            if planned.exists() and committed.exists():
                self.batches_s.append(committed.stat().st_mtime - planned.stat().st_mtime)
        self._seen = done + 1

    def processes(self) -> dict[int, str]:
        """Return its processes: `driver`, `java` and `worker`s."""
        found = {self.process.pid: "driver"}
        for pid in _below(self.process.pid):
            found[pid] = "java" if Path(f"/proc/{pid}/comm").read_text().strip() == "java" else "worker"
        return found


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            yield child
            yield from _below(child)


@dataclass(frozen=True)
class Memory:
    """The memory of a watch, in bytes: `heap` and `metaspace` are what Java uses after a full collection, the
    others the share of each sort of process in the machine's memory (PSS)."""

    heap: int
    metaspace: int
    java: int
    driver: int
    worker: int


def memory(watch: Watch, histogram: Path | None = None) -> Memory:
    """Collect the garbage of a watch's Java, and measure. `histogram`: where to write what is in the heap."""
    processes = watch.processes()
    java = next(pid for pid, role in processes.items() if role == "java")
    _asked(java, "GC.run")  # what it finds, Spark's cleaner lets go of
    live = _asked(java, "GC.class_histogram")
    if histogram is not None:
        histogram.write_text(live)
    found = _METASPACE.search(_asked(java, "GC.heap_info"))
    assert found is not None
    of_role = {role: sum(map(_pss, (p for p, its in processes.items() if its == role)))
               for role in ("java", "driver", "worker")}  # fmt: skip
    return Memory(int(live.split()[-1]), int(found[1]) << 10, **of_role)


def _asked(pid: int, command: str) -> str:
    return subprocess.run(["jcmd", str(pid), command], capture_output=True, text=True, check=True).stdout


def _pss(pid: int) -> int:
    return int(memory_mib(pid, "Pss") * 1024) << 10


def size(directory: Path) -> tuple[int, int]:
    """Return how many files are below a directory, and their bytes."""
    files = size_bytes = 0
    for here, _, names in os.walk(directory):
        for name in names:
            try:
                size_bytes += os.stat(os.path.join(here, name)).st_size
            except FileNotFoundError:
                continue
            files += 1
    return files, size_bytes
