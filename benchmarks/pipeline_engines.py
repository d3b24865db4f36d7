"""The engines that `benchmarks.pipeline` compares: each reduces all rows to the same two tables."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from pipeline.analysis.expected import SEGMENTS_A_WORD

OTHERS: Final = ("duckdb", "polars")
ENGINES: Final = ("spark", "sail", *OTHERS)
WINDOW_NS: Final = 10_000_000_000
_THREADS: Final = 2
Answer = list[tuple[int, ...]]


def numbered(buses: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return the segments with their bits for "received from" and "put onto", as in the audit."""
    return [(bus, 1 << n, 1 << n + SEGMENTS_A_WORD) for n, bus in enumerate(sorted(buses))]


class Spark:
    """Our jobs, in a local session with two threads."""

    def __init__(self, directory: Path) -> None:
        from pipeline.engine import java, session
        from pipeline.engine.choice import Where
        from pipeline.engine.jvm import Jvm
        from pipeline.input import read as capture

        self.jvm = Jvm(java.find(), "4g")
        self.jvm.connect()
        where = Where(master=f"local[{_THREADS}]")
        self.spark = session.make(where, session.settings(where, ours=True))
        self.rows = capture.read(self.spark, capture.root(str(directory)))

    def audit(self) -> Answer:
        from pipeline.analysis import inventory, sums

        at = inventory.as_places(inventory.take(self.rows))
        found = sums.signatures(sums.sums(sums.keyed(self.rows, at), at), at).collect()
        return [tuple(row) for row in found]

    def rates(self) -> Answer:
        from pipeline.analysis import rates

        seen = rates.seen(self.rows, WINDOW_NS / 1e9, 1)
        return [(row.w, row.dir, row.token1, row.n, row.bytes) for row in seen.collect()]

    def memory_mb(self) -> float:
        return peak_mb(self.jvm.process.pid) + peak_mb(os.getpid())


class OnSail(Spark):
    """Our jobs, on a Sail server that this class starts."""

    def __init__(self, directory: Path) -> None:
        from pipeline.engine import session
        from pipeline.engine.choice import Where
        from pipeline.engine.sail import Sail
        from pipeline.input import read as capture

        self.sail = Sail("4g")
        where = Where(remote=self.sail.connect())
        self.spark = session.make(where, session.settings(where, ours=True))
        self.rows = capture.read(self.spark, capture.root(str(directory)))

    def memory_mb(self) -> float:
        return peak_mb(self.sail.process.pid) + peak_mb(os.getpid())


class DuckDb:
    """The same jobs in SQL, as users of DuckDB would write them."""

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
    """The same jobs with lazy frames, as users of Polars would write them."""

    def __init__(self, directory: Path) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(_THREADS)
        import polars as pl

        self.pl = pl
        files = str(directory / "capture" / "*" / "*" / "*.parquet")
        self.every = pl.scan_parquet(files, hive_partitioning=True)
        self.rows = self.every.filter(pl.col("kind") == 0)

    def audit(self) -> Answer:
        pl, rows = self.pl, self.rows
        contents = pl.col("contents").struct
        places = (
            self.every.filter((pl.col("kind") == 3) & (contents.field("kind") == 0))
            .group_by("gateway", "hub", "bus", "dir")
            .agg(contents.field("rows").sum().alias("n"), contents.field("enveloped").sum().alias("e"))
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


KINDS: Final[dict[str, Callable[[Path], Any]]] = {
    "spark": Spark, "sail": OnSail, "duckdb": DuckDb, "polars": Polars,
}  # fmt: skip


def peak_mb(pid: int) -> float:
    """Return the peak memory of a process, in MiB (Linux only)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
