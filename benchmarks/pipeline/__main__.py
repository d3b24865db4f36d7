"""`python -m benchmarks.pipeline`: time the whole audit on Spark, Sail and DuckDB, on the same files.

Each engine does all that `buscoupler audit` does once it has started, DuckDB in SQL written for this
benchmark (`benchmarks.pipeline.sql`); and rates in windows of ten seconds by first token. They must find the
same faults. "Warm" is the best of several runs in one process, after a first one for the JIT compiler, of 15
at 1 M rows; "cold" is a process that does it once. Memory is the peak of that process, and for Spark also of
its Java.
"""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import sections
from benchmarks.command import Command, run_as_command
from benchmarks.pipeline.engines import ENGINES, Answer
from benchmarks.pipeline.page import Cold, Measured, Warm, markdown, of_commands
from tests.helpers.ports import free_port
from tests.rigs.planted import CAPTURES, generate, plan_of

MILLIONS: Final = (1, 5, 20)
JOBS: Final = ("audit", "rates")
TRIVIAL: Final = ("pipeline", "sql")
"""The coldest job: a query that reads no row, so that its time is the start and the end of an engine."""
REPEATS: Final = 5
COMPILED: Final = 15  # short runs until Java has compiled all: it goes on for about ten


def inside(engine: str, jobs: Sequence[str], directory: Path, memory: str, repeats: int) -> None:
    """Run each job once and then `repeats` times, in the child process; print one line of JSON."""
    made = ENGINES[engine](directory, memory)
    answers, best_s = {}, {}
    for job in jobs:
        act = {"audit": made.audit, "rates": made.rates}[job]
        times = []
        for _ in range(repeats + 1):
            begin = time.perf_counter()
            answer = act()
            times.append(time.perf_counter() - begin)
        answers[job], best_s[job] = digest(answer), min(times[1:] or times)
    peak_mb = made.memory_mb()
    print(json.dumps(Warm(answers, best_s, peak_mb, made.work() if repeats else {})._asdict()), flush=True)
    os._exit(0)  # how the engines shut down is not measured


def digest(answer: Answer) -> str:
    """Hash the rows of an answer, in any order."""
    rows = {name: sorted(map(repr, found)) for name, found in sorted(answer.items())}
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def words_of(engine: str, jobs: Sequence[str], directory: Path, memory: str, repeats: int) -> list[str]:
    """Make the command of a child process."""
    words = [sys.executable, "-m", "benchmarks.pipeline", "--inside", engine, "--jobs", ",".join(jobs)]
    return [*words, "--directory", str(directory), "--spark-memory", memory, "--repeat", str(repeats)]


def warm(engine: str, jobs: Sequence[str], directory: Path, memory: str, repeats: int) -> Warm:
    words = words_of(engine, jobs, directory, memory, repeats)
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return Warm(**json.loads(done.stdout.splitlines()[-1]))


def cold(words: Sequence[str]) -> Cold:
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cold(time.perf_counter() - begin, usage.ru_maxrss / 1024)


_COMMAND: Final = (sys.executable, "-m", "buscoupler")


def commands(directory: Path, memory: str) -> dict[str, Cold]:
    """Time our commands as users give them, and a process of DuckDB; the better of two runs."""
    every: dict[str, list[str]] = {}
    for job in JOBS:
        for engine in ("spark", "sail"):
            words = [*_COMMAND, job, str(directory), "-q", "--no-resident", "--memory", memory]
            every[f"{engine} {job}"] = [*words, "--engine", engine]
        every[f"duckdb {job}"] = words_of("duckdb", [job], directory, memory, repeats=0)
    for engine in ("spark", "sail"):
        words = [*_COMMAND, *TRIVIAL, str(directory), "-q", "--no-resident", "--memory", memory]
        every[f"{engine} `SELECT 1`"] = [*words, "--engine", engine, "-e", "SELECT 1"]
    return {name: min(cold(words) for _ in range(2)) for name, words in every.items()}


def resident(directory: Path, port: int) -> dict[str, float]:
    """Time our commands against a resident server."""
    from pipeline.engine import serve

    found = {}
    with serve.warm_up(port, "pipeline.jobs.rehearsal") as warming:
        warming.wait()
    for job in JOBS:
        words = [*_COMMAND, job, str(directory), "-q", "--remote", serve.url(port)]
        times = [cold(words).s for _ in range(COMPILED)]
        found[f"connect {job}, first"] = times[0]
        found[f"connect {job}, median of the last five of {COMPILED}"] = statistics.median(times[-5:])
    return found


def with_server(directory: Path, memory: str) -> dict[str, float]:
    """Run `resident` on a server that this function starts and stops."""
    from pipeline.engine import serve

    port = free_port()
    with tempfile.TemporaryDirectory() as name, serve.running(port, memory, Path(name) / "log"):
        return resident(directory, port)


def measured(directory: Path, sort: str, millions: int, jobs: Sequence[str], options: Any) -> Measured:
    """Make a capture and time the jobs on each engine. Exit if their answers differ."""
    truth = generate(directory, plan_of(sort, millions * 1_000_000))
    megabytes = sum(path.stat().st_size for path in directory.rglob("*.parquet")) / 1e6
    memory, repeats = options.spark_memory, max(options.repeat, COMPILED if millions == 1 else 0)
    engines = {engine: warm(engine, jobs, directory, memory, repeats) for engine in ENGINES}
    for job in jobs:
        answers = {engine: one.answers[job] for engine, one in engines.items()}
        if len(set(answers.values())) > 1:
            raise SystemExit(
                f"benchmarks: the answers to {job} of {sort}, {millions} M rows, differ: {answers}"
            )
    share = truth.beats / truth.frames
    found = Measured(sort, millions, truth.rows, share, megabytes, engines)
    print(
        json.dumps({**found._asdict(), "engines": {k: v._asdict() for k, v in engines.items()}}), flush=True
    )
    return found


def measure(where: Path, options: Any) -> tuple[list[Measured], dict[int, dict[str, Cold]], dict[str, float]]:
    """Time the captures, of the first sort also rates and commands, of its smallest also against a server."""
    results: list[Measured] = []
    whole: dict[int, dict[str, Cold]] = {}
    connect: dict[str, float] = {}
    for sort in options.sorts:
        for size in options.millions:
            directory, is_first = where / f"{sort}-{size}m", sort == options.sorts[0]
            results.append(measured(directory, sort, size, JOBS if is_first else JOBS[:1], options))
            if is_first:
                whole[size] = commands(directory, options.spark_memory)
                connect = connect or with_server(directory, options.spark_memory)
            shutil.rmtree(directory)
    return results, whole, connect


def only_commands(where: Path, options: Any) -> str:
    """Time the commands alone, of the first sort of captures."""
    whole = {}
    for size in options.millions:
        directory = where / f"{size}m"
        generate(directory, plan_of(options.sorts[0], size * 1_000_000))
        whole[size] = commands(directory, options.spark_memory)
        shutil.rmtree(directory)
    return "\n".join(of_commands(options.sorts[0], whole, {}))


def sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def parser() -> Command:
    made = Command("benchmarks.pipeline", __doc__)
    some = ",".join(map(str, MILLIONS))
    made.add_argument("--millions", type=sizes, default=MILLIONS, help=f"sizes in millions of rows ({some})")
    every = ",".join(CAPTURES)
    made.add_argument("--sorts", type=words, default=CAPTURES, help=f"of captures, with commas ({every})")
    made.add_repeat(REPEATS)
    made.add_argument(
        "--spark-memory", default="4g", help="Java's heap; Sail and DuckDB may hold as much (4g)"
    )
    made.add_argument("--commands", action="store_true", help="only print the times of whole commands")
    made.add_output("the page (docs, for all sizes and sorts)")
    made.add_hidden("--inside", choices=ENGINES)
    made.add_hidden("--jobs", type=words, default=JOBS)
    made.add_hidden("--directory", type=Path)
    return made


def main() -> int:
    options = parser().parse_args()
    if options.inside:
        inside(options.inside, options.jobs, options.directory, options.spark_memory, options.repeat)
        return 0
    with tempfile.TemporaryDirectory(prefix="buscoupler-bench-") as name:
        if options.commands:
            print(only_commands(Path(name), options))
            return 0
        results, whole, connect = measure(Path(name), options)
    text = markdown(results, whole, connect, " ".join(sys.argv[1:]))
    is_whole = set(options.millions) >= set(MILLIONS) and options.sorts == CAPTURES
    output = options.output or (sections.PAGE if is_whole else None)
    if output:
        sections.write("jobs", "benchmarks.pipeline", text, output)
    print(text)
    return 0


if __name__ == "__main__":
    run_as_command(main)
