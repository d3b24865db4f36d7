"""Rates, last values and an alert rule, kept up to date as rows are recorded (`pipeline.jobs.watch`).

Rates and last values are written a batch at a time under the batch's number, so that a batch which is
repeated after a crash replaces itself: nothing is lost or doubled, and nothing is too late for them.
Alerts remember what they have raised, for as long as a file may be late; what comes later than that is
not looked at, and counted.
"""

import argparse
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from bus.wire.frame import DATA_BYTES_MAX
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern
from capture import schema
from capture.files import FILE_SUFFIX
from pipeline.analysis import rates, watched
from pipeline.analysis.last import newest
from pipeline.analysis.shared.frames import begins, content, frames, is_told, received
from pipeline.errors import PipelineError
from pipeline.input.read import PATHS, is_remote
from pipeline.output.sinks import LINES_MOST, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pipeline.signals.wanted import Wanted

_FILES: Final = 64  # files in one batch
_AGE: Final = "36500d"  # Spark leaves out files a week older than the newest, and says nothing
_LOOK_S: Final = 0.2
_ALERTS_S: Final = 1.0  # from batch to batch; a longer batch is followed by the next

_PARTITIONS: Final = "2"  # fixed by the first checkpoint
_KEEP: Final = 2  # earlier states of the last values
_TEXT_MOST: Final = 200  # letters of a text that is cut; JSON writes some of them in six bytes
NUMBER: Final = "[-+]?([0-9]+([.][0-9]+)?|(?<![A-Za-z0-9_])[.][0-9]+)([eE][-+]?[0-9]+(?![A-Za-z0-9_]))?"
"""A number in a text, for Java and for Python. The digits of words such as `3e8a` have no exponent."""
CUT: Final = "cut"
_PLAN: Final = "=== Streaming Query ==="
_CLASS: Final = re.compile(r"^(bus|capture|pipeline)(\.\w+)+: ")  # of an error of ours
_OURS: Final = f"{PipelineError.__module__}.{PipelineError.__qualname__}: "


def start(
    spark: "SparkSession",
    where: str,
    options: argparse.Namespace,
    sink: Sink | None = None,
    wanted: "Wanted | None" = None,
) -> "list[StreamingQuery]":
    """Start one query for the tables, and one for alerts if there is a rule; they go to a `sink` if given.

    The signals that are `wanted` are a table, too. Raises `PipelineError` for an older directory.
    """
    spark.conf.set("spark.sql.shuffle.partitions", _PARTITIONS)
    rows, output = stream(spark, where), Path(options.output)
    if not is_remote(where) and (output / "checkpoint/tables/sources").exists():
        raise PipelineError(
            f"{output}: written by an older buscoupler, which noted files, not rows; give another directory"
        )
    queries = [
        rows.writeStream.queryName("tables")
        .foreachBatch(tables(output, options.seconds, wanted))
        .option("checkpointLocation", str(output / "checkpoint" / "tables"))
        .trigger(**_trigger(options.once, options.every_s))
        .start()
    ]
    if options.alert:
        own = pattern_of(options.pattern)
        found = alerts(rows, options.alert, options.late_s, own)
        queries.append(_alerting(found, output, options, sink))
    return queries


def _trigger(once: bool, seconds: float) -> dict[str, Any]:
    return {"availableNow": True} if once else {"processingTime": f"{seconds * 1000:.0f} milliseconds"}


def stream(spark: "SparkSession", where: str) -> "DataFrame":
    """Read rows as they are recorded; where only Spark can look, as files land: only finished ones have a
    name that it looks at."""
    if not is_remote(where):
        from pipeline.input.source import Buscoupler

        spark.dataSource.register(Buscoupler)
        return spark.readStream.format("buscoupler").load(where)
    reader = spark.readStream.schema(schema.DDL_PARTITIONED).option("maxFilesPerTrigger", _FILES)
    return reader.option("maxFileAge", _AGE).option("pathGlobFilter", f"*{FILE_SUFFIX}").parquet(where)


def tables(
    output: Path, seconds: float, wanted: "Wanted | None" = None
) -> "Callable[[DataFrame, int], None]":
    """Make the function that writes a batch: its rates, the last values up to it, and its signals."""

    def batch(rows: "DataFrame", number: int) -> None:
        cached = rows.persist()
        rates.seen(cached, seconds, 1).write.mode("overwrite").parquet(
            str(output / "rates" / f"batch={number}")
        )
        watched.merge(rows.sparkSession, output / "rates", number, watched.summed)
        if wanted is not None:
            _write_signals(cached, wanted, output / "signals", number)
        found = newest(cached)
        earlier = {one: path for one, path in watched.batches(output / "last").items() if one < number}
        if earlier:
            before = rows.sparkSession.read.options(**PATHS).parquet(str(earlier[max(earlier)]))
            found = newest(before.unionByName(found), again=True)
        found.write.mode("overwrite").parquet(str(output / "last" / f"batch={number}"))
        for old, path in earlier.items():
            if old < number - _KEEP:
                shutil.rmtree(path, ignore_errors=True)
        cached.unpersist()

    return batch


def _write_signals(rows: "DataFrame", wanted: "Wanted", place: Path, number: int) -> None:
    """Write the values in the messages of a batch, a row each."""
    from pipeline.signals.pieces import of_rows
    from pipeline.signals.work import Long

    of_rows(rows, wanted, Long()).write.mode("overwrite").parquet(str(place / f"batch={number}"))
    watched.merge(rows.sparkSession, place, number, lambda some: some)


def alerts(rows: "DataFrame", rule: str, late_s: float, own: Pattern) -> "DataFrame":
    """Find the frames that came from a segment and fulfil `rule`, once each, however many gateways saw them.

    Frames on the pattern `own` are alerts themselves, which a recorder may hear: they raise none, nor does
    what gateways say about themselves. The rule sees the capture's columns, `text` (the payload) and `value`
    (the first number in it). An equal frame raises no second alert within `late_s`. A frame of a clock that
    is ahead counts as of now, or all of right clocks would be too late. Raises `PipelineError` for a rule
    that is no SQL condition.
    """
    text = F.col("payload").cast("string")
    number = F.expr(f"try_cast(regexp_extract(text, '{NUMBER}', 0) as double)")
    came = frames(rows).where(received() & F.col("tokens").isNotNull() & ~is_told())
    foreign = came.where(~begins(own)) if own else came
    valued = foreign.withColumn("text", text).withColumn("value", number)
    try:
        chosen = valued.where(F.expr(rule))
        chosen.schema  # noqa: B018 - Connect analyses no earlier
    except Exception as error:
        raise PipelineError(f"--alert {rule!r}: {str(error).splitlines()[0]}") from None
    at = F.least(F.timestamp_micros(F.expr("ts_ns div 1000")), F.current_timestamp())
    timed = chosen.withColumn("key", content()).withColumn("at", at)
    once = timed.withWatermark("at", f"{late_s} seconds").dropDuplicatesWithinWatermark(["key"])
    return once.select("ts_ns", "gateway", "bus", "tokens", "text", "value")


def _alerting(
    found: "DataFrame",
    output: Path,
    options: argparse.Namespace,
    sink: Sink | None,
) -> "StreamingQuery":
    checkpoint = output / "checkpoint" / "alerts"
    writer = found.writeStream.foreachBatch(to_files(output) if sink is None else to_sink(sink))
    if options.to:
        from pipeline.input.source import Buscoupler

        found.sparkSession.dataSource.register(Buscoupler)
        checkpoint.mkdir(parents=True, exist_ok=True)
        lines = fitted(found).observe(CUT, F.count_if("cut").alias(CUT)).select("payload")
        target = {"to": options.to, "pattern": options.pattern, "checkpoint": str(checkpoint)}
        writer = lines.writeStream.format("buscoupler").options(**target)
    named = writer.queryName("alerts").option("checkpointLocation", str(checkpoint))
    return named.trigger(**_trigger(options.once, _ALERTS_S)).start()


def to_files(output: Path) -> "Callable[[DataFrame, int], None]":
    """Make the function that writes a batch of alerts, if there are any."""

    def batch(found: "DataFrame", number: int) -> None:
        cached = found.persist()
        if not cached.isEmpty():
            where = str(output / "alerts" / f"batch={number}")
            cached.coalesce(1).write.mode("overwrite").parquet(where)
            watched.merge(found.sparkSession, output / "alerts", number, lambda rows: rows)
        cached.unpersist()

    return batch


def to_sink(sink: Sink) -> "Callable[[DataFrame, int], None]":
    """Make the function that gives a batch of alerts to a sink, as JSON: the first ones of too many."""

    def batch(found: "DataFrame", number: int) -> None:
        line = F.to_json(F.struct(*found.columns)).alias("line")
        rows = found.orderBy("ts_ns", line).select(line).limit(LINES_MOST + 1).collect()
        lines = [row.line for row in rows[:LINES_MOST]]
        if len(rows) > LINES_MOST:
            lines.append(json.dumps({CUT: True, "alerts": found.count()}))
        if lines:
            sink(lines, number)

    return batch


def fitted(found: "DataFrame") -> "DataFrame":
    """Add each alert as JSON that a frame has room for (`payload`), and whether it was `cut` for that."""
    texts = {"text": F.substring("text", 1, _TEXT_MOST)}
    short = [texts.get(name, F.col(name)).alias(name) for name in found.columns]
    bare = [F.col(name) for name in ("ts_ns", "value")]
    is_cut = F.lit(True).alias("cut")
    whole, *rest = (
        F.to_json(F.struct(*parts)) for parts in (found.columns, [*short, is_cut], [*bare, is_cut])
    )
    fits = F.octet_length(whole) <= DATA_BYTES_MAX
    cut = F.when(F.octet_length(rest[0]) <= DATA_BYTES_MAX, rest[0]).otherwise(rest[1])
    return found.withColumns({"payload": F.when(fits, whole).otherwise(cut), "cut": ~fits})


def follow(
    queries: "list[StreamingQuery]",
    tell: Callable[[str], None],
    warn: Callable[[str], None],
    is_on: Callable[[], bool] = lambda: True,
) -> None:
    """Report each batch by `tell`, or by `warn` if rows were too late, until all queries have ended.

    Raises `PipelineError` with the reason if a query failed, or if what is watched is no longer `on`.
    """
    seen: dict[str, _Seen] = {}
    active = True
    while active:
        active = any(query.isActive for query in queries)
        for query in queries:
            for line, lost in _news(query, seen):
                (warn if lost else tell)(line + lost)
        for query in queries:
            error = query.exception()
            if error is not None:
                raise PipelineError(f"{query.name}: {_last_line(str(error))}")
        if active and not is_on():
            raise PipelineError(
                "--live: the recorder has ended, its last lines above say why; start it again to go on"
            )
        if active:
            time.sleep(_LOOK_S)


class _Seen(NamedTuple):
    """The reports of a query so far: the newest batch with rows, and the time of the newest progress."""

    batch: int = -1
    time: str = ""


def _news(query: "StreamingQuery", seen: dict[str, _Seen]) -> Iterator[tuple[str, str]]:
    """Yield a line for each new batch, and what was lost. A hundred past ones are asked for only if there is
    a new one: they are long."""
    newest, known = query.lastProgress, seen.get(query.name, _Seen())
    if newest is None or newest["timestamp"] == known.time:
        return
    batch = known.batch
    for progress in query.recentProgress:
        if progress["batchId"] > batch and progress["numInputRows"]:
            batch = progress["batchId"]
            yield (
                f"{query.name}: batch {batch}, {progress['numInputRows']} rows",
                late(progress) + cut(progress),
            )
    seen[query.name] = _Seen(batch, newest["timestamp"])


def late(progress: Any) -> str:
    """Say how many rows the watermark left out; only rows that fulfil the rule get that far."""
    dropped = sum(one["numRowsDroppedByWatermark"] for one in progress["stateOperators"])
    return f", {dropped} TOO LATE for alerts (see --late-s)" if dropped else ""


def cut(progress: Any) -> str:
    """Say how many alerts were cut to what a frame has room for."""
    count = (progress["observedMetrics"] or {}).get(CUT)
    return f", {count[0]} alerts CUT to fit into a frame" if count and count[0] else ""


def _last_line(text: str) -> str:
    """Find what a query says at its end: the last cause, before the plan and beside the stacks of two
    languages, which are indented."""
    said = [line for line in text.partition(_PLAN)[0].splitlines() if line.strip()]
    ours = [line.partition(_OURS)[2] for line in said if _OURS in line]
    causes = ours or [line for line in said if not line[0].isspace()] or said
    return _CLASS.sub("", causes[-1]) if causes else text
