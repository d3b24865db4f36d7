"""Whether a cluster gives the rows that this machine gives, also if a worker is killed in a job.

`python -m benchmarks.pipeline.cluster` plants a capture, and runs each job as users do: on this machine, and
with `--master` on four workers with a core and 1 GB each on loopback. The worker that is the first to hold
rows for others is killed (-9) in each job, and a new one comes for the next. All rows of all tables are
compared, and the page of a report. The exit status is 1 if one differs, or if a job ended before the kill.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow.parquet as pq

from benchmarks.command import Command, run_as_command
from tests.rigs.cluster import Cluster
from tests.rigs.planted import CAPTURES, generate, plan_of

JOBS: Final = ("audit", "rates", "latency", "signals", "last", "failovers", "report")
WORKERS: Final = 4
ROWS: Final = 1_000_000
_COMMAND: Final = (sys.executable, "-m", "buscoupler")
Rows = Counter[str]


def started(job: str, capture: Path, place: Path, *where: str) -> "subprocess.Popen[bytes]":
    """Start a job that writes into a place."""
    output = ["--output", str(place / "page.html")] if job == "report" else ["--parquet", str(place)]
    words = [*_COMMAND, job, str(capture), "--quiet", *output, *where]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def answer(place: Path) -> dict[str, Rows]:
    """Return the rows of each table below a place, and the lines of a page."""
    found = {}
    for table in sorted({path.parent for path in place.rglob("*.parquet")}):
        found[table.name] = Counter(map(str, pq.read_table(table).to_pylist()))
    for page in place.glob("*.html"):
        found["page"] = Counter(page.read_text().splitlines())
    return found


def differing(one: dict[str, Rows], other: dict[str, Rows]) -> Iterator[str]:
    """Yield a line for each table that differs."""
    for name in sorted(one.keys() | other.keys()):
        missing, more = (a.get(name, Rows()) - b.get(name, Rows()) for a, b in ((one, other), (other, one)))
        if missing or more or not (name in one and name in other):
            example = next(iter(missing or more), "the whole table")
            yield f"{name}: {missing.total()} rows missing, {more.total()} more, such as {example[:200]}"


def compared(cluster: Cluster, job: str, capture: Path, place: Path) -> Iterator[str]:
    """Do a job here and on the cluster, say what that took, and yield what is wrong."""
    here, there = place / job / "here", place / job / "there"
    status = started(job, capture, here, "--no-resident").wait()
    begin = time.perf_counter()
    process = started(job, capture, there, *cluster.words)
    try:
        killed = cluster.kill(lambda: process.poll() is not None)
        at_s = time.perf_counter() - begin
        if killed and process.wait() != status:
            yield f"{job}: status {process.returncode}, not {status}"
    finally:
        process.terminate()
    due = answer(here)
    rows = ", ".join(f"{name} {rows.total()}" for name, rows in due.items())
    took = f"{killed or 'nobody'} killed after {at_s:.0f} s, done after {time.perf_counter() - begin:.0f} s"
    print(f"{job}: {took}; rows: {rows}", flush=True)
    if not killed or not due:
        yield f"{job}: no worker held rows" if due else f"{job}: no table"
    yield from (f"{job}: {line}" for line in differing(due, answer(there)))
    if killed:
        cluster.add()


def measure(capture: Path, place: Path, jobs: Sequence[str]) -> int:
    """Compare all jobs, and return how many things are wrong."""
    wrong = 0
    (place / "cluster").mkdir(parents=True)
    with closing(Cluster(place / "cluster", WORKERS)) as cluster:
        for job in jobs:
            for line in compared(cluster, job, capture, place):
                print(f"DIFFERS: {line}", flush=True)
                wrong += 1
    return wrong


def main() -> int:
    parser = Command("benchmarks.pipeline.cluster", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of the capture ({ROWS})")
    parser.add_argument("--sort", choices=CAPTURES, default="trunk", help="the rows that have envelopes")
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=JOBS, help=",".join(JOBS))
    options = parser.parse_args()
    with TemporaryDirectory(prefix="buscoupler-cluster-") as name:
        capture = Path(name) / "planted"
        generate(capture, plan_of(options.sort, options.rows))
        wrong = measure(capture, Path(name) / "out", options.jobs)
    print(f"{wrong} differ")
    return int(bool(wrong))


if __name__ == "__main__":
    run_as_command(main)
