"""Whether a cluster gives the rows that this machine gives, also if a worker is killed in a job.

`python -m benchmarks.pipeline.cluster` plants a capture, and runs each job as users do: on this machine, and
with `--master` on four workers with a core and 1 GB each on loopback. The worker that is the first to hold
rows for others is killed (-9) in each job, and a new one comes for the next. All rows of all tables are
compared, the page of a report, and the answer to a query. The exit status is 1 if one differs, or if a job
ended before the kill.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.command import Command, run_as_command
from bus.logs import LEVELS, Line
from bus.wire.frame import unpack
from capture import parquet, schema
from capture.files import capture_file, day_of, name_of
from capture.schema import Kind
from tests.rigs.cluster import Cluster
from tests.rigs.planted import CAPTURES, START_NS, generate, plan_of
from tests.rigs.planted.names import FILE


class Work(NamedTuple):
    """A command that is given a capture. `into` is its option for where it writes: a directory, or with
    `page` a page in one; "" if it prints its rows. With `has_names` it takes those of the capture. Unless it
    `shares`, its workers hold no rows for each other, and none is killed."""

    words: tuple[str, ...]
    into: str = "--parquet"
    page: str = ""
    has_names: bool = False
    shares: bool = True


QUERY: Final = "SELECT kind, hub, count(*) AS frames FROM findings GROUP BY ALL ORDER BY ALL"
JOBS: Final = {
    **{name: Work((name,)) for name in ("audit", "rates", "latency", "signals", "last", "failovers", "logs")},
    "values": Work(("signals",), "--output", shares=False),
    "quality": Work(("pipeline", "quality")),
    "tokens": Work(("pipeline", "tokens"), has_names=True),
    "sql": Work(("pipeline", "sql", "--json", "-e", QUERY), ""),
    "watch": Work(("pipeline", "watch", "--once"), "--output"),
    "report": Work(("report",), "--output", "page.html"),
}
"""All jobs that run on Spark, by name; `values` are those of signals as a table."""
WORKERS: Final = 4
PARTS: Final = ("--conf", f"spark.sql.shuffle.partitions={4 * WORKERS}")
"""Rows are divided as suits so few workers: Spark's 200 parts take minutes more."""
ROWS: Final = 1_000_000
LINES: Final = 10_000
_GATEWAY: Final = "gw-log"
_COMMAND: Final = (sys.executable, "-m", "buscoupler")
_PRINTED: Final = "printed"
Rows = Counter[str]


def started(work: Work, capture: Path, place: Path, *where: str) -> "subprocess.Popen[bytes]":
    """Start a command that writes into a place."""
    (place if not work.into or work.page else place.parent).mkdir(parents=True, exist_ok=True)
    into = [work.into, str(place / work.page)] if work.into else []
    names = ["--names", str(capture / FILE)] if work.has_names else []
    command = [*_COMMAND, *work.words, str(capture), "--quiet", *into, *names, *where]
    with (Path(os.devnull) if work.into else place / _PRINTED).open("wb") as out:
        return subprocess.Popen(command, stdout=out)


def answer(place: Path) -> dict[str, Rows]:
    """Return the rows of each table below a place, and the lines of a page and of what was printed."""
    found = {}
    for table in sorted({path.parent for path in place.rglob("*.parquet")}):
        found[str(table.relative_to(place))] = Counter(map(str, pq.read_table(table).to_pylist()))
    for page in (*place.glob("*.html"), *place.glob(_PRINTED)):
        if lines := page.read_text().splitlines():
            found[page.name] = Counter(lines)
    return found


def plant_lines(directory: Path, count: int) -> None:
    """Add lines of a log to a capture, which has none: each heard twice, of a gateway of its own."""
    metadata = {schema.META_VERSION: str(schema.VERSION), schema.META_GATEWAY: _GATEWAY}
    rows = [_row_of(number // 2, number) for number in range(2 * count)]
    table = pa.Table.from_pylist(rows, schema.arrow_schema({**metadata, schema.META_BOOT: str(START_NS)}))
    path = capture_file(directory, day_of(START_NS), _GATEWAY, name_of(START_NS, 0))
    path.parent.mkdir(parents=True)
    parquet.write(path, table.schema, table.to_batches())


def _row_of(line: int, number: int) -> dict[str, Any]:
    at_ns = START_NS + line * 1_000_000
    message = Line(at_ns, LEVELS[line % len(LEVELS)], _GATEWAY, "planted", f"line {line}").frame()
    frame = unpack(message)
    return {
        "boot": START_NS, "cap_seq": number, "ts_ns": at_ns + number % 2, "kind": Kind.FRAME.value,
        "hub": "bus log", "bus": "log", "peer": f"p{number % 2}", "dir": 0, "verdict": 0, "count": 1,
        "type": frame.type,
        "tokens": list(frame.tokens), "payload": frame.data, "message_bytes": len(message),
    }  # fmt: skip


def differing(one: dict[str, Rows], other: dict[str, Rows]) -> Iterator[str]:
    """Yield a line for each table that differs."""
    for name in sorted(one.keys() | other.keys()):
        missing, more = (a.get(name, Rows()) - b.get(name, Rows()) for a, b in ((one, other), (other, one)))
        if missing or more or not (name in one and name in other):
            example = next(iter(missing or more), "the whole table")
            yield f"{name}: {missing.total()} rows missing, {more.total()} more, such as {example[:200]}"


def compared(cluster: Cluster, job: str, capture: Path, place: Path) -> Iterator[str]:
    """Do a job here and on the cluster, print the line of a table on it, and yield what is wrong."""
    here, there = place / job / "here", place / job / "there"
    begin = time.perf_counter()
    status = started(JOBS[job], capture, here, "--no-resident").wait()
    middle = time.perf_counter()
    process = started(JOBS[job], capture, there, *cluster.words, *PARTS)
    try:
        killed = cluster.kill(lambda: process.poll() is not None)
        at_s = time.perf_counter() - middle
        if killed and process.wait() != status:
            yield f"{job}: status {process.returncode}, not {status}"
    finally:
        process.terminate()
    due = answer(here)
    wrong = [*differing(due, answer(there))]
    counts = f"{len(due)} | {sum(rows.total() for rows in due.values()):,}"
    times = f"{middle - begin:.0f} | {at_s:.0f} | {time.perf_counter() - middle:.0f}"
    print(f"| {job} | {counts} | {times} | {'no' if wrong else 'yes'} |", flush=True)
    if not due:
        yield f"{job}: no table"
    elif not killed and JOBS[job].shares:
        yield f"{job}: no worker held rows"
    yield from (f"{job}: {line}" for line in wrong)
    if killed:
        cluster.add()


def measure(capture: Path, place: Path, jobs: Sequence[str]) -> int:
    """Compare all jobs, and return how many things are wrong."""
    found = list[str]()
    (place / "cluster").mkdir(parents=True)
    print("| job | tables | rows | here, s | a worker killed after, s | cluster, s | equal |")
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    with closing(Cluster(place / "cluster", WORKERS)) as cluster:
        for job in jobs:
            found += compared(cluster, job, capture, place)
    for line in found:
        print(f"DIFFERS: {line}")
    return len(found)


def main() -> int:
    parser = Command("benchmarks.pipeline.cluster", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of the capture ({ROWS})")
    parser.add_argument("--sort", choices=CAPTURES, default="trunk", help="the rows that have envelopes")
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=[*JOBS], help=",".join(JOBS))
    options = parser.parse_args()
    with TemporaryDirectory(prefix="buscoupler-cluster-") as name:
        capture = Path(name) / "planted"
        generate(capture, plan_of(options.sort, options.rows))
        plant_lines(capture, LINES)
        wrong = measure(capture, Path(name) / "out", options.jobs)
    print(f"{wrong} differ")
    return int(bool(wrong))


if __name__ == "__main__":
    run_as_command(main)
