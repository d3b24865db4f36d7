"""One function a job: read, call the transforms, print tables or write Parquet."""

import argparse
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capture.files import listed
from pipeline import read as capture
from pipeline.engine import sail, session
from pipeline.engine.jvm import Jvm
from pipeline.engine.sail import Sail
from pipeline.errors import PipelineError
from pipeline.tables import Progress, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

QUICK_BYTES: Final = 256 << 20
"""Below this much Parquet a job is over before thorough compilation would pay."""

ON_SAIL: Final = ("audit", "rates", "last", "failovers", "tokens")
"""Jobs that give the same there: it has no KLL sketches for `latency`."""

_NO_ROOM: Final = "Failed to allocate"  # Sail's joins need all of one side in memory

ROWS_MOST: Final = 1_000_000
"""Shown of a table. A sort with a bound needs no pass of its own to divide the range."""


class Table(NamedTuple):
    """What a job shows: a title, a DataFrame, and how many of its rows (None: all, up to `ROWS_MOST`)."""

    name: str
    title: str
    frame: "DataFrame"
    rows: int | None = None


Tables = list[Table]


def run(options: argparse.Namespace) -> int:
    """The exit status of the job `options.job`."""
    if options.job == "warm":
        from pipeline.engine import warm

        return warm.run(options)
    if options.job == "serve":
        from pipeline.engine import serve

        return serve.run(options)
    with opened(options) as (spark, where, tell):
        tell(f"{options.job}: {_size(where)}")
        if options.job == "watch":
            from pipeline.jobs import watch

            return watch.run(options, spark, where)
        if options.job == "report":
            from pipeline.jobs import report

            return report.run(options, spark, where, tell)
        return _show(options, JOBS[options.job](options, spark, where), tell)


@contextmanager
def opened(options: argparse.Namespace) -> "Iterator[tuple[SparkSession, str, Progress]]":
    """A session, the directory of the segments, and progress; the segments are looked at while Java
    starts."""
    tell = Progress(options.quiet)
    where = capture.root(options.directory)
    on_sail = session.choose(options, options.job in ON_SAIL, here=not capture.is_remote(where))
    if on_sail:
        tell("on Sail (on Spark: --master 'local[*]')")
    local = session.start(options, quick=_is_small(where))
    if isinstance(local, Jvm):
        tell("starting Spark on this machine")
    try:
        if not capture.is_remote(where):
            capture.check(where)
    except BaseException:
        if local is not None:
            local.close()
        raise
    at_ctrl_c = sail.ended_at_once() if on_sail else nullcontext()
    with at_ctrl_c, session.session(options, local) as spark, _one_line(local):
        for key, value in session.SMALL.items() if _is_small(where) else ():
            spark.conf.set(key, value)
        yield spark, where, tell
    tell("done")


@contextmanager
def _one_line(local: session.Local | None) -> Iterator[None]:
    """What the engine raises, as one line for the user: its stack goes on for pages. Our own errors stay as
    they are."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        logging.getLogger("buscoupler").info("Spark's words in full", exc_info=error)
        words = _of_sail(local, error) if isinstance(local, Sail) else f"Spark: {_cause(str(error))}"
        raise PipelineError(words) from None


def _of_sail(local: Sail, error: Exception) -> str:
    spark, words = "or take Spark (--master 'local[*]')", _cause(str(error))
    if local.process.poll() is not None:
        return f"Sail has been killed, as a rule for want of memory; let it hold less (--memory), {spark}"
    more = f"; give it more (--memory), {spark}" if _NO_ROOM in words else ""
    return f"Sail: {words}{more}"


def _cause(text: str) -> str:
    """The last cause that is named, else the first line; at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0] if lines else "no reason given")[:300]


def _is_small(where: str) -> bool:
    return not capture.is_remote(where) and capture.size_bytes(where) < QUICK_BYTES


def _size(where: str) -> str:
    if capture.is_remote(where):
        return where
    return f"{len(listed(Path(where)))} files, {capture.size_bytes(where) / 1e6:.1f} MB"


def _show(options: argparse.Namespace, tables: Tables, tell: Progress) -> int:
    """Print the tables, or one JSON object of them; write them, if asked."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for table, rows in zip(tables, collected(tables), strict=True):
        shown[table.name] = [row.asDict(recursive=True) for row in rows]
        if not options.json:
            columns = rows[0].__fields__ if rows else table.frame.columns  # to ask for them takes a while
            print(f"{table.title}:\n{text(columns, rows)}\n")
        if options.parquet:
            table.frame.write.mode("overwrite").parquet(f"{options.parquet}/{options.job}/{table.name}")
    if options.json:
        print(json.dumps(shown, default=_plain))
    return _verdict(options.job, shown)


def collected(tables: Tables) -> "Iterator[list[Row]]":
    """Each table's rows, two at a time: one is planned while the other is worked out."""
    with ThreadPoolExecutor(2) as pool:
        limited = [table.frame.limit(ROWS_MOST if table.rows is None else table.rows) for table in tables]
        yield from pool.map(lambda frame: frame.collect(), limited)


def _plain(value: Any) -> Any:
    return (
        bytes(value).decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)
    )


def _verdict(job: str, shown: Mapping[str, list[dict[str, Any]]]) -> int:
    """1 where an audit found a fault, or names share a token."""
    wrong = {"audit": ("summary",), "tokens": ("collisions",)}.get(job, ())
    return int(any(shown[name] for name in wrong))


def _audit(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.jobs.audit import agreement, audit

    found = audit(capture.read(spark, where), options.window_ms)
    return [
        Table("totals", "Frames that entered, and how their rows were matched", found.totals),
        Table("summary", "Faults by kind, stage and place", found.summary),
        Table(
            "findings",
            f"The first {options.limit} faults",
            found.findings.orderBy("ts_ns", "segment", "kind", "key", "stage"),
            options.limit,
        ),
        Table("ledger", "What the ledgers say was dropped or rejected", found.ledger),
        Table(
            "agreement",
            "Drops by ledger, beside losses in the traffic",
            agreement(found.findings, found.ledger),
        ),
        Table("capture", "What the recorders saw, and missed", found.capture),
    ]


def _rates(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.engine.kept import kept
    from pipeline.jobs import rates

    rows = capture.read(spark, where)
    windows = kept(rates.rates(rows, options.seconds, options.depth))
    capacity = capacities(options.capacity)
    return [
        Table("prefixes", "By segment and prefix", rates.by_prefix(windows, options.depth), 50),
        Table("talkers", "Top talkers", rates.talkers(rows)),
        Table("media", "How full the media are", rates.media(windows, options.seconds, capacity)),
        Table("windows", "The last windows", windows.orderBy("start_ns", "bus"), 0),
    ]


def capacities(words: list[str]) -> dict[str, float]:
    try:
        return {name: float(value) for name, _, value in (word.rpartition("=") for word in words)}
    except ValueError:
        raise PipelineError("--capacity: give SEGMENT=BYTES_PER_S, for example can0=62500") from None


def _last(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.jobs.last import last

    return [Table("last", "The last value of each pattern", last(capture.read(spark, where)), options.limit)]


def _failovers(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.jobs.failovers import failovers

    found = failovers(capture.read(spark, where), gap_ms=options.gap_ms)
    return [Table("failovers", "Takeovers and service gaps", found)]


def _latency(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.jobs import latency

    found = latency.latency(capture.read(spark, where), options.sample)
    return [
        Table("clocks", "Clocks, against the first gateway's", found.clocks),
        Table("hops", "Each hop, and end to end, in microseconds", found.summary),
    ]


def _tokens(options: argparse.Namespace, spark: "SparkSession", where: str) -> Tables:
    from pipeline.jobs import tokens

    names = tokens.names(spark, options.names)
    return [
        Table("collisions", "Names that share a token", tokens.collisions(names)),
        Table(
            "unknown",
            "Tokens in the capture without a name",
            tokens.unknown(capture.read(spark, where), names),
            50,
        ),
    ]


JOBS: Final[dict[str, Callable[[argparse.Namespace, "SparkSession", str], Tables]]] = {
    "audit": _audit, "rates": _rates, "last": _last, "failovers": _failovers,
    "latency": _latency, "tokens": _tokens,
}  # fmt: skip


def output(directory: str) -> Path:
    """Made, if need be. Raises `PipelineError` if it cannot be."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PipelineError(f"{directory}: {error.strerror}") from None
    return Path(directory)
