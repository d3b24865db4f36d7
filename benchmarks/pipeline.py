"""`python -m benchmarks.pipeline`: audit and rates on Spark, DuckDB and Polars, on the same files; writes
docs.

Each engine reduces all rows to the same table: the audit's first step (places, sums of each frame,
signatures) and rates in windows of ten seconds by first token. Their answers are compared before anything
is timed. Warm is the best of seven in one process, after one (a JIT compiler needs some); cold is a process
that does it once. Memory is the peak of that process, and for Spark of its Java.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.planted import Plan, generate
from pipeline.expected import SEGMENTS_A_WORD

DOCS: Final = Path(__file__).parent.parent / "docs" / "performance-pipeline.md"
MILLIONS: Final = (1, 2, 5, 10, 20)
ENGINES: Final = ("spark", "duckdb", "polars")
JOBS: Final = ("audit", "rates")
REPEATS: Final = 7
RESIDENT: Final = 15  # commands that a resident server gets: its Java goes on compiling for some ten
WINDOW_NS: Final = 10_000_000_000
_THREADS: Final = 2
Answer = list[tuple[int, ...]]


def numbered(buses: Iterable[str]) -> list[tuple[str, int, int]]:
    """Segments with their bits for "received from" and "put onto", as the audit has them."""
    return [(bus, 1 << n, 1 << n + SEGMENTS_A_WORD) for n, bus in enumerate(sorted(buses))]


class Spark:
    """Our jobs, in a local session with two threads."""

    def __init__(self, directory: Path) -> None:
        from pipeline import capture, session

        options = argparse.Namespace(master=None, remote=None, memory="4g")
        self.jvm = session.start(options)
        assert self.jvm is not None
        self.jvm.connect()
        self.spark = session.make(f"local[{_THREADS}]", None)
        self.rows = capture.read(self.spark, capture.root(str(directory)))

    def audit(self) -> Answer:
        from pipeline import audit, survey

        at = survey.places(self.rows)
        found = audit.signatures(audit.sums(audit.keyed(self.rows, at), at), at).collect()
        return [tuple(row) for row in found]

    def rates(self) -> Answer:
        from pipeline import rates

        seen = rates.seen(self.rows, WINDOW_NS / 1e9, 1)
        return [(row.w, row.dir, row.token1, row.n, row.bytes) for row in seen.collect()]

    def memory_mb(self) -> float:
        assert self.jvm is not None
        return peak_mb(self.jvm.process.pid) + peak_mb(os.getpid())


class DuckDb:
    """The same in SQL, as its users would write it."""

    def __init__(self, directory: Path) -> None:
        import duckdb

        self.db = duckdb.connect()
        self.db.execute(f"SET threads = {_THREADS}")
        files = directory / "capture" / "*" / "*" / "*.parquet"
        self.db.execute(
            f"CREATE VIEW rows AS SELECT * FROM read_parquet('{files}', hive_partitioning = true)"
        )

    def audit(self) -> Answer:
        places = self.db.execute(
            "SELECT gateway, hub, bus, dir, sum(contents.rows) AS n, sum(contents.enveloped) AS e "
            "FROM rows WHERE kind = 3 AND contents.kind = 0 GROUP BY ALL"
        ).fetchall()
        bits = ", ".join(str(one) for one in numbered({place[2] for place in places}))
        whole = all(n == e for *_, n, e in places)
        key = "(origin << 32) | seq" if whole else "hash(type, tokens, payload)"
        found = self.db.execute(f"""
            WITH bits(bus, heard_bit, sent_bit) AS (VALUES {bits}),
            sums AS (
                SELECT {key} AS key,
                    bit_or(CASE WHEN dir = 1 THEN sent_bit ELSE heard_bit END) AS word,
                    sum((CASE WHEN dir = 1 THEN {1 << 20} ELSE 1 END)
                        + (CASE WHEN origin IS NULL THEN 0 ELSE {1 << 40} END))::BIGINT AS rows,
                    max(coalesce(tokens[1], -1)) AS token
                FROM rows JOIN bits USING (bus)
                WHERE kind = 0 AND (dir = 0 OR starts_with(hub, 'bridge '))
                GROUP BY 1)
            SELECT word, rows, token, count(*) FROM sums GROUP BY ALL""")
        return list(found.fetchall())

    def rates(self) -> Answer:
        found = self.db.execute(f"""
            SELECT w, dir, token, n, bytes FROM (
                SELECT ts_ns // {WINDOW_NS} AS w, bus, gateway, hub, dir, tokens[1] AS token,
                    count(*) AS n, sum(message_bytes)::BIGINT AS bytes
                FROM rows WHERE kind = 0 GROUP BY ALL)""")
        return list(found.fetchall())

    def memory_mb(self) -> float:
        return peak_mb(os.getpid())


class Polars:
    """The same as lazy frames."""

    def __init__(self, directory: Path) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(_THREADS)
        import polars as pl

        self.pl = pl
        files = str(directory / "capture" / "*" / "*" / "*.parquet")
        self.every = pl.scan_parquet(files, hive_partitioning=True)
        self.rows = self.every.filter(pl.col("kind") == 0)

    def audit(self) -> Answer:
        pl, rows = self.pl, self.rows
        told = pl.col("contents").struct
        places = (
            self.every.filter((pl.col("kind") == 3) & (told.field("kind") == 0))
            .group_by("gateway", "hub", "bus", "dir")
            .agg(told.field("rows").sum().alias("n"), told.field("enveloped").sum().alias("e"))
            .collect()
        )
        bits = pl.DataFrame(
            numbered(set(places["bus"])), ["bus", "heard_bit", "sent_bit"], orient="row"
        ).lazy()
        whole = (places["n"] == places["e"]).all()
        stamped = pl.col("origin") * (1 << 32) + pl.col("seq")
        said = pl.struct("type", "tokens", "payload").hash()
        sent = pl.col("dir") == 1
        wanted = rows.filter(~sent | pl.col("hub").str.starts_with("bridge ")).join(bits, on="bus")
        unit = pl.when(sent).then(1 << 20).otherwise(1).cast(pl.Int64) + pl.when(
            pl.col("origin").is_null()
        ).then(0).otherwise(1 << 40).cast(pl.Int64)
        sums = wanted.group_by((stamped if whole else said).alias("key")).agg(
            pl.when(sent).then("sent_bit").otherwise("heard_bit").bitwise_or().alias("word"),
            unit.sum().alias("rows"),
            pl.col("tokens").list.first().cast(pl.Int64).fill_null(-1).max().alias("token"),
        )  # fmt: skip
        found = sums.group_by("word", "rows", "token").agg(pl.len().alias("count"))
        return list(found.collect(engine="streaming").rows())

    def rates(self) -> Answer:
        pl = self.pl
        keys = [
            (pl.col("ts_ns") // WINDOW_NS).alias("w"), "bus", "gateway", "hub", "dir",
            pl.col("tokens").list.first().alias("token"),
        ]  # fmt: skip
        found = self.rows.group_by(keys).agg(
            pl.len().alias("n"), pl.col("message_bytes").cast(pl.Int64).sum().alias("bytes")
        )
        table = found.select("w", "dir", "token", "n", "bytes").collect(engine="streaming")
        return list(table.rows())

    def memory_mb(self) -> float:
        return peak_mb(os.getpid())


_KINDS: Final[dict[str, Callable[[Path], Any]]] = {"spark": Spark, "duckdb": DuckDb, "polars": Polars}


def peak_mb(pid: int) -> float:
    """The most memory that a process has held (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def inside(engine: str, directory: Path, repeats: int) -> None:
    """What the child process does: each job `repeats` times after one; a line of JSON."""
    made = _KINDS[engine](directory)
    told: dict[str, Any] = {"answers": {}, "first_s": {}, "best_s": {}}
    for job in JOBS:
        times = []
        for _ in range(repeats + 1):
            begin = time.perf_counter()
            answer = getattr(made, job)()
            times.append(time.perf_counter() - begin)
        told["answers"][job] = digest(answer)
        told["first_s"][job], told["best_s"][job] = times[0], min(times[1:] or times)
    told["peak_mb"] = made.memory_mb()
    print(json.dumps(told), flush=True)
    os._exit(0)  # what the engines do at their end is not measured


def digest(answer: Answer) -> str:
    import hashlib

    return hashlib.sha256(repr(sorted(tuple(map(int, row)) for row in answer)).encode()).hexdigest()[:16]


def child(engine: str, directory: Path, repeats: int = REPEATS) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.pipeline", "--inside", engine, "--directory", str(directory)]
    done = subprocess.run([*words, "--repeats", str(repeats)], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cold_s(words: Sequence[str]) -> float:
    """A command from start to end."""
    begin = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begin


def cold(directory: Path, port: int) -> dict[str, float]:
    """Commands as users give them: ours here, ours against a resident server, and the others'."""
    from pipeline import serve

    ours = [sys.executable, "-m", "appliance.cli"]
    found = {}
    with serve.warm_up(port) as warming:
        warming.wait()
    for job in JOBS:
        found[f"spark {job}"] = min(cold_s([*ours, job, str(directory), "-q"]) for _ in range(2))
        resident = [*ours, job, str(directory), "-q", "--remote", serve.url(port)]
        times = [cold_s(resident) for _ in range(RESIDENT)]
        found[f"connect {job}, first"] = times[0]
        found[f"connect {job}, median of the last five of {RESIDENT}"] = statistics.median(times[-5:])
    for engine in ("duckdb", "polars"):
        words = [
            sys.executable,
            "-m",
            "benchmarks.pipeline",
            "--inside",
            engine,
            "--directory",
            str(directory),
            "--repeats",
            "0",
        ]
        found[f"{engine} both"] = cold_s(words)
    return found


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
                raise SystemExit(f"benchmarks: {job} at {size} M rows differs: {answers}")
        print(json.dumps(one), flush=True)
        results.append(one)
        if size != millions[0]:
            shutil.rmtree(directory)
    return results


def with_server(directory: Path) -> dict[str, float]:
    import socket

    from pipeline import serve

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log"
        server = serve.start(port, "4g", log)
        try:
            serve.wait(server, port, log)
            return cold(directory, port)
        finally:
            serve.stop(server)


def markdown(results: list[dict[str, Any]], commands: dict[str, float], envelope: str) -> str:
    """The page."""
    lines = [
        "# What the pipeline costs", "",
        f"`python -m benchmarks.pipeline` on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; "
        f"load average at the end {os.getloadavg()[0]:.1f}. "
        f"Captures with planted faults, envelopes: {envelope}. "
        "The three engines' answers were compared and are equal.", "",
        "## Warm, seconds (best of seven), and peak memory of the process", "",
        "| rows | files MB | audit: Spark | DuckDB | Polars | Spark / faster | "
        "rates: Spark | DuckDB | Polars | Spark / faster | MB: Spark | DuckDB | Polars |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for one in results:
        cells = [f"{one['millions']} M", f"{one['mb']:.0f}"]
        for job in JOBS:
            times = [one[engine]["best_s"][job] for engine in ENGINES]
            cells += [*(f"{value:.2f}" for value in times), f"{times[0] / min(times[1:]):.1f}"]
        cells += [f"{one[engine]['peak_mb']:.0f}" for engine in ENGINES]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        f"## A command from start to end, {results[0]['millions']} M rows, seconds",
        "",
        "| command | s |",
        "|---|---:|",
    ]
    lines += [f"| {name} | {value:.1f} |" for name, value in commands.items()]
    lines += ["", *_WORDS]
    return "\n".join(lines) + "\n"


_WORDS: Final = (
    "`spark audit` is the whole command: it also explains every fault, one by one, and reads the ledgers. "
    "`connect` is the same against `buscoupler pipeline serve`. The class archive of `buscoupler warm` is "
    "used where there is one.",
    "",
    "On one small machine DuckDB is faster, and our files are readable by it (docs/pipeline.md). "
    "Spark is what carries on when one machine is outgrown: the same lines on a cluster, and "
    "streams with checkpoints.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--millions", default=",".join(map(str, MILLIONS)), help="sizes, with commas")
    parser.add_argument("--envelope", default="all", help="all, trunk or none: how frames are known")
    parser.add_argument("--output", type=Path, default=None, help="the page (default: docs, for all sizes)")
    parser.add_argument("--inside", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=REPEATS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options.inside, options.directory, options.repeats)
    millions = [int(word) for word in options.millions.split(",")]
    with tempfile.TemporaryDirectory(prefix="buscoupler-bench-") as name:
        results = measure(millions, options.envelope, Path(name))
        commands = with_server(Path(name) / f"{millions[0]}m")
    text = markdown(results, commands, options.envelope)
    output = options.output or (DOCS if tuple(millions) == MILLIONS else None)
    if output:
        output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
