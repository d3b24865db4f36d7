"""`python -m benchmarks.pipeline`: time audit and rates on Spark, Sail, DuckDB and Polars on the same files.

Each engine reduces all rows to the same tables: the audit's first step (places, sums of each frame,
signatures), and rates in windows of ten seconds by first token. The answers must be equal. "Warm" is the best
of seven runs in one process, after a first one for the JIT compiler; "cold" is a process that does it once.
Memory is the peak of that process, and for Spark also of its Java.
"""

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
from typing import Any, Final, NamedTuple

from benchmarks.command import DOCS, Command, run_as_command, written
from benchmarks.pipeline_engines import ENGINES, KINDS, OTHERS, Answer
from benchmarks.planted import Plan, generate
from benchmarks.report import machine
from benchmarks.systems import free_port

REMARKS: Final = "\n## Remarks\n"
PAGE: Final = DOCS / "performance-pipeline.md"
MILLIONS: Final = (1, 2, 5, 10, 20)
JOBS: Final = ("audit", "rates")
REPEATS: Final = 7
RESIDENT: Final = 15  # commands for a resident server: its Java goes on compiling for about ten


def inside(engine: str, directory: Path, repeats: int) -> None:
    """Run each job once and then `repeats` times, in the child process; print one line of JSON."""
    made = KINDS[engine](directory)
    found: dict[str, Any] = {"answers": {}, "first_s": {}, "best_s": {}}
    for job in JOBS:
        times = []
        for _ in range(repeats + 1):
            begin = time.perf_counter()
            answer = getattr(made, job)()
            times.append(time.perf_counter() - begin)
        found["answers"][job] = digest(answer)
        found["first_s"][job], found["best_s"][job] = times[0], min(times[1:] or times)
    found["peak_mb"] = made.memory_mb()
    print(json.dumps(found), flush=True)
    os._exit(0)  # how the engines shut down is not measured


def digest(answer: Answer) -> str:
    import hashlib

    return hashlib.sha256(repr(sorted(tuple(map(int, row)) for row in answer)).encode()).hexdigest()[:16]


def child(engine: str, directory: Path, repeats: int = REPEATS) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.pipeline", "--inside", engine, "--directory", str(directory)]
    done = subprocess.run([*words, "--repeats", str(repeats)], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


class Cold(NamedTuple):
    """A command from start to end: its seconds, and the peak memory of its largest process."""

    s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.s:.1f} ({self.peak_mb:.0f})"


def cold(words: Sequence[str]) -> Cold:
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cold(time.perf_counter() - begin, usage.ru_maxrss / 1024)


_COMMAND: Final = (sys.executable, "-m", "buscoupler")
_WHERE: Final = {engine: ("--engine", engine) for engine in ("spark", "sail")}


def whole(directory: Path) -> dict[str, Cold]:
    """Time our commands as users give them; the better of two runs."""
    return {
        f"{engine} {job}": min(cold([*_COMMAND, job, str(directory), "-q", *where]) for _ in range(2))
        for job in JOBS
        for engine, where in _WHERE.items()
    }


def resident(directory: Path, port: int) -> dict[str, float]:
    """Time our commands against a resident server."""
    from pipeline.engine import serve

    found = {}
    with serve.warm_up(port, "pipeline.jobs.rehearsal") as warming:
        warming.wait()
    for job in JOBS:
        words = [*_COMMAND, job, str(directory), "-q", "--remote", serve.url(port)]
        times = [cold(words).s for _ in range(RESIDENT)]
        found[f"connect {job}, first"] = times[0]
        found[f"connect {job}, median of the last five of {RESIDENT}"] = statistics.median(times[-5:])
    return found


def others(directory: Path) -> dict[str, Cold]:
    """Time both queries in one process, for each other engine."""
    ours = [sys.executable, "-m", "benchmarks.pipeline"]
    rest = ["--directory", str(directory), "--repeats", "0"]
    return {f"{engine} both": cold([*ours, "--inside", engine, *rest]) for engine in OTHERS}


def measure(millions: Sequence[int], envelope: str, where: Path) -> list[dict[str, Any]]:
    results = []
    for size in millions:
        directory = where / f"{size}m"
        truth = generate(directory, Plan(rows=size * 1_000_000, envelope=envelope))
        megabytes = sum(path.stat().st_size for path in directory.rglob("*.parquet")) / 1e6
        one: dict[str, Any] = {"millions": size, "rows": truth.rows, "frames": truth.frames, "mb": megabytes}
        one |= {engine: child(engine, directory) for engine in ENGINES}
        for job in JOBS:
            answers = {engine: one[engine]["answers"][job] for engine in ENGINES}
            if len(set(answers.values())) > 1:
                raise SystemExit(f"benchmarks: the answers to {job} at {size} M rows differ: {answers}")
        one["commands"] = whole(directory) | others(directory)
        print(json.dumps(one), flush=True)
        results.append(one)
        if size != millions[0]:
            shutil.rmtree(directory)
    return results


def with_server(directory: Path) -> dict[str, float]:
    """Run `resident` on a server that this function starts and stops."""
    from pipeline.engine import serve

    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log"
        server = serve.start(port, "4g", log)
        try:
            serve.wait(server, port, log)
            return resident(directory, port)
        finally:
            serve.stop(server)


def markdown(results: list[dict[str, Any]], connect: dict[str, float], envelope: str) -> str:
    """Return the page."""
    names = " | ".join(("Spark", "Sail", "DuckDB", "Polars"))
    sizes = [one["millions"] for one in results]
    lines = [
        "# The cost of the pipeline", "",
        f"`python -m benchmarks.pipeline` on {machine()}; "
        f"load average at the end {os.getloadavg()[0]:.1f}. "
        f"Captures with planted faults, envelopes: {envelope}. "
        "The engines' answers were compared and are equal.", "",
        "## Warm, seconds (best of seven), and peak memory of the process", "",
        f"| rows | files MB | audit: {names} | Spark / faster of the last two | "
        f"rates: {names} | Spark / faster | MB: {names} |",
        f"|{'---:|' * (2 + 2 * (len(ENGINES) + 1) + len(ENGINES))}",
        *map(_row, results), "",
        "## A command from start to end, seconds, and peak memory of its largest process (MB)", "",
        f"| command | {' | '.join(f'{size} M rows' for size in sizes)} |",
        f"|---|{'---:|' * len(results)}",
    ]  # fmt: skip
    for name in results[0]["commands"]:
        lines.append(f"| {name} | {' | '.join(map(str, _across(results, name)))} |")
    for name, value in connect.items():
        lines.append(f"| {name} | {value:.1f} |{' |' * (len(results) - 1)}")
    lines += ["", *_WORDS]
    return "\n".join(lines) + "\n"


def _across(results: list[dict[str, Any]], command: str) -> list[Cold]:
    return [one["commands"][command] for one in results]


def _row(one: dict[str, Any]) -> str:
    cells = [f"{one['millions']} M", f"{one['mb']:.0f}"]
    for job in JOBS:
        times = {engine: one[engine]["best_s"][job] for engine in ENGINES}
        least = min(times[engine] for engine in OTHERS)
        cells += [*(f"{value:.2f}" for value in times.values()), f"{times['spark'] / least:.1f}"]
    cells += [f"{one[engine]['peak_mb']:.0f}" for engine in ENGINES]
    return f"| {' | '.join(cells)} |"


_WORDS: Final = (
    "`audit` is the whole command: it also explains every fault, one by one, and reads the ledgers. "
    "`sail` is `--engine sail`. `spark` is the default, with the "
    "class archive of `buscoupler warm` if there is one. `connect` uses the server of "
    "`buscoupler pipeline serve`.",
    "",
    "On one small machine DuckDB is faster, and it can read our files (docs/pipeline.md). "
    "Spark is for data that outgrows one machine: the same commands run on a cluster, and "
    "streams have checkpoints.",
)


def remarks(page: Path) -> str:
    """Return what people have added to the page, from its last heading on. "" if there is none."""
    _, heading, rest = (page.read_text() if page.exists() else "").partition(REMARKS)
    return heading + rest


def main() -> int:
    parser = Command("benchmarks.pipeline", __doc__)
    parser.add_argument("--millions", default=",".join(map(str, MILLIONS)), help="sizes in millions of rows")
    parser.add_argument("--envelope", default="all", help="all, trunk or none: the rows that have envelopes")
    parser.add_output("the page (docs, for all sizes)")
    parser.add_hidden("--inside", choices=ENGINES)
    parser.add_hidden("--directory", type=Path)
    parser.add_hidden("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.directory, options.repeats)
        return 0
    millions = [int(word) for word in options.millions.split(",")]
    with tempfile.TemporaryDirectory(prefix="buscoupler-bench-") as name:
        results = measure(millions, options.envelope, Path(name))
        connect = with_server(Path(name) / f"{millions[0]}m")
    text = markdown(results, connect, options.envelope)
    output = options.output or (PAGE if tuple(millions) == MILLIONS else None)
    if output:
        text += remarks(output)
        written(output).write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    run_as_command(main)
