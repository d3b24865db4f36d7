"""The engines that `benchmarks.pipeline` compares: each answers the whole audit, and rates in windows.

Spark and Sail run our jobs as the commands do, DuckDB runs `benchmarks.pipeline.sql`.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from benchmarks.pipeline.work import KEPT, counted
from benchmarks.processes import peak_mib

if TYPE_CHECKING:
    from pipeline.engine.choice import Where

WINDOW_NS: Final = 10_000_000_000
FINDINGS: Final = 20  # that are shown one by one
_THREADS: Final = 2
_COMPARED: Final = {
    "summary": ("kind", "stage", "segment", "gateway", "hub", "count"),
    "totals": ("frames",),
    "ledger": ("gateway", "hub", "bus", "peer", "dir", "reason", "count"),
    "capture": ("gateway", "boot", "rows", "missed", "holes"),
}
"""The tables and columns of an audit that must be equal. Others say how it was found: engines may differ."""
Rows = list[tuple[Any, ...]]
Answer = dict[str, Rows]
Work = dict[str, int]


def summed(rows: Iterable[Sequence[Any]]) -> Rows:
    """Add up the counts (the last column) of rows that are equal in the others."""
    counts: dict[tuple[Any, ...], Any] = {}
    for *key, count in rows:
        counts[tuple(key)] = counts.get(tuple(key), 0) + count
    return [(*key, count) for key, count in counts.items()]


class Spark:
    """Our jobs, in a local session with two threads."""

    def __init__(self, directory: Path, memory: str) -> None:
        from pipeline.engine import java
        from pipeline.engine.choice import Where
        from pipeline.engine.jvm import Jvm

        self.jvm = Jvm(java.find(), memory)
        self.jvm.connect()
        self.pid = self.jvm.process.pid
        self._open(Where(master=f"local[{_THREADS}]"), directory)

    def _open(self, where: "Where", directory: Path) -> None:
        """Make the session with the settings that a command has for a capture of this size."""
        from pipeline.engine import session
        from pipeline.input import read
        from pipeline.jobs.opening import QUICK_BYTES

        kept = {} if where.on_sail else KEPT
        self.spark = session.make(where, {**session.settings(where, ours=True), **kept})
        self.directory = read.root(str(directory))
        is_small = where.here and read.size_bytes(self.directory) < QUICK_BYTES
        for key, value in session.SMALL.items() if is_small else ():
            self.spark.conf.set(key, value)

    def audit(self) -> Answer:
        """Do all that `buscoupler audit` does once its session is open, and look at the files, which it does
        while that opens."""
        from pipeline import cache
        from pipeline.input import sound
        from pipeline.jobs.audit import JOB
        from pipeline.jobs.record import Facts, OpenCapture, collected
        from pipeline.output.tables import Progress

        assert JOB.tables is not None
        options = JOB.parsed(self.directory, "--limit", str(FINDINGS))
        looked = sound.look(Path(self.directory), thorough=False)
        capture = OpenCapture(
            self.spark, self.directory, Progress(quiet=True), facts=Facts(rows=looked.rows),
            newest_ns=looked.newest, summaries=looked.summaries,
        )  # fmt: skip
        tables = JOB.tables(options, capture)
        found = {table.name: rows for table, rows in zip(tables, collected(tables), strict=True)}
        cache.release()
        return {
            name: summed([row[column] for column in columns] for row in found[name])
            for name, columns in _COMPARED.items()
        }

    def rates(self) -> Answer:
        from pipeline.analysis import rates
        from pipeline.input import read

        seen = rates.seen(read.read(self.spark, self.directory), WINDOW_NS / 1e9, 1)
        return {"rates": [(row.w, row.dir, row.token1, row.n, row.bytes) for row in seen.collect()]}

    def work(self) -> Work:
        """Audit once more, and count what Spark does for it."""
        return counted(self.spark, self.audit)._asdict()

    def memory_mb(self) -> float:
        return peak_mib(self.pid) + peak_mib(os.getpid())


class OnSail(Spark):
    """Our jobs, on a Sail server that this class starts."""

    def __init__(self, directory: Path, memory: str) -> None:
        from pipeline import cache
        from pipeline.engine.choice import SAIL, Where
        from pipeline.engine.sail import Sail

        self.sail = Sail(memory)
        self.pid = self.sail.process.pid
        self._open(Where(SAIL, remote=self.sail.connect()), directory)
        cache.write_down(self.spark)

    def work(self) -> Work:
        return {}


class DuckDb:
    """DuckDB with the audit in SQL, written for this benchmark as users of DuckDB would."""

    def __init__(self, directory: Path, memory: str) -> None:
        from benchmarks.pipeline import sql

        self.temporary = TemporaryDirectory(prefix="buscoupler-duckdb-")
        self.db = sql.connect(directory, _THREADS, f"{memory}b", Path(self.temporary.name))

    def audit(self) -> Answer:
        from benchmarks.pipeline import sql

        sql.audit(self.db)
        self.db.execute(
            f"FROM findings ORDER BY ts_ns, segment, kind, key, stage LIMIT {FINDINGS}"
        ).fetchall()
        self.db.execute("FROM agreement").fetchall()
        return {
            name: summed(self.db.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall())
            for name, columns in _COMPARED.items()
        }

    def rates(self) -> Answer:
        found = self.db.execute(f"""
            SELECT w, dir, token, n, bytes FROM (
                SELECT ts_ns // {WINDOW_NS} AS w, bus, gateway, hub, dir, tokens[1] AS token,
                    count(*) AS n, sum(message_bytes)::BIGINT AS bytes
                FROM captured WHERE kind = 0 GROUP BY ALL)""")
        return {"rates": found.fetchall()}

    def work(self) -> Work:
        return {}

    def memory_mb(self) -> float:
        return peak_mib(os.getpid())


ENGINES: Final[dict[str, Callable[[Path, str], Any]]] = {
    "spark": Spark, "sail": OnSail, "duckdb": DuckDb,
}  # fmt: skip
