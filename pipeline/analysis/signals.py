"""Signals of a capture: what single pieces of it gave, put together."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.shared.chosen import least, most, of_first, with_first
from pipeline.signals.blocks import KEYS
from pipeline.signals.conditions import Condition
from pipeline.signals.episodes import GAP, OUTSIDE, SEEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NAMES_MOST: Final = 10_000
_LAST: Final = ("last", "last_text")
"""The columns of the last value, number and text: of two at one time the greater, whichever batch comes
first."""
_EPISODE: Final = ("kind", *KEYS, "start_ns", "end_ns", "rows", "min", "max")
STATS: Final = (
    "min", "mean", "max", "stddev", "nans", "period_ms", "gaps", "longest_ms", "longest_from_ns", "outside",
)  # fmt: skip
"""The columns that only `--stats` shows."""


def signals(sums: "DataFrame", gap_ms: float) -> "DataFrame":
    """Put the sums of batches together: a row for each signal.

    Gaps between batches are those between the last value of one and the first of the next.
    """
    in_order = Window.partitionBy(*KEYS).orderBy("first_ns", "last_ns")
    before = F.max("last_ns").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    pause = F.greatest(F.col("first_ns") - before, F.lit(0).cast("bigint"))
    every = Window.partitionBy(*KEYS)
    mean = F.sum(F.col("mean") * F.col("numbers")).over(every) / F.sum("numbers").over(every)
    longest = {f"most_{name}": F.max(name).over(every) for name in ("pause_ns", "longest_ns")}
    each = sums.withColumns({"before_ns": before, "pause_ns": pause, "mean_of_all": mean}).withColumns(
        longest
    )
    apart = F.col("mean") - F.col("mean_of_all")
    found = (
        with_first(each, "is_last", KEYS, *_latest())
        .groupBy(*KEYS)
        .agg(
            F.sum("rows").alias("rows"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
            *_last(),
            least("min").alias("min"),
            F.first("mean_of_all").alias("mean"),
            most("max").alias("max"),
            F.sum("numbers").alias("numbers"),
            (F.sum("m2") + F.sum(F.col("numbers") * apart * apart)).alias("m2"),
            F.sum("nans").alias("nans"),
            (F.sum("gaps") + F.sum(_one(F.col("pause_ns") > round(gap_ms * 1e6)))).alias("gaps"),
            F.max("longest_ns").alias("within_ns"),
            _start_of("longest_ns", "longest_from_ns").alias("within_from_ns"),
            F.max("pause_ns").alias("between_ns"),
            _start_of("pause_ns", "before_ns").alias("between_from_ns"),
            F.sum("outside").alias("outside"),
        )
    )
    return found.select(*KEYS, "rows", "first_ns", "last_ns", "last", "last_text", *_stats()).orderBy(*KEYS)


def _latest() -> "list[Column]":
    return [F.desc(name) for name in ("last_ns", *_LAST)]


def _last() -> "list[Column]":
    number, text = _LAST
    return [most(F.when(F.col("is_last"), F.col(number))).alias(number), *of_first("is_last", text)]


def _start_of(length: str, start: str) -> "Column":
    """Aggregate to the start of the longest; of several so long, the first."""
    return F.min(F.when(F.col(length) == F.col(f"most_{length}"), F.col(start)))


def _one(condition: "Column") -> "Column":
    return F.when(condition, F.lit(1)).otherwise(F.lit(0))


def _stats() -> "list[Column]":
    within, between = F.coalesce("within_ns", F.lit(-1)), F.coalesce("between_ns", F.lit(-1))
    longest = F.greatest(within, between)
    start = F.when(between > within, F.col("between_from_ns")).otherwise(F.col("within_from_ns"))
    several = F.col("rows") > 1
    period = (F.col("last_ns") - F.col("first_ns")) / (F.col("rows") - 1) / 1e6
    stddev = F.sqrt(F.col("m2") / (F.col("numbers") - 1))
    return [
        F.col("min"), F.col("mean"), F.col("max"),
        F.when(F.col("numbers") > 1, stddev).alias("stddev"), F.col("nans"),
        F.when(several, period).alias("period_ms"), F.col("gaps"),
        F.when(several, longest / 1e6).alias("longest_ms"), F.when(several, start).alias("longest_from_ns"),
        F.col("outside"),
    ]  # fmt: skip


def episodes(parts: "DataFrame", gap_ms: float) -> "DataFrame":
    """Put the episodes of batches together: gaps, and runs of values out of range, in the order of time.

    A run ends with its last value out of range. `parts` has the columns of `pipeline.signals.episodes`.
    """
    within = parts.where(F.col("kind") == GAP)
    found = _between(parts, gap_ms).unionByName(within.select(*_EPISODE)).unionByName(_joined(parts))
    seconds = ((F.col("end_ns") - F.col("start_ns")) / 1e9).alias("seconds")
    return found.select("kind", *KEYS, "start_ns", "end_ns", seconds, "rows", "min", "max").orderBy(
        "start_ns", *KEYS, "kind"
    )


def _between(parts: "DataFrame", gap_ms: float) -> "DataFrame":
    """Find the gaps from the end of one batch to the start of the next."""
    in_order = Window.partitionBy(*KEYS).orderBy("start_ns", "end_ns")
    before = F.max("end_ns").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    seen = parts.where(F.col("kind") == SEEN).withColumn("before_ns", before)
    gaps = seen.where(F.col("start_ns") - F.col("before_ns") > round(gap_ms * 1e6))
    moved = gaps.withColumns(
        {"kind": F.lit(GAP), "end_ns": F.col("start_ns"), "rows": F.lit(0).cast("bigint")}
    )
    return moved.withColumn("start_ns", F.col("before_ns")).select(*_EPISODE)


def _joined(parts: "DataFrame") -> "DataFrame":
    """Join runs out of range that go on from one batch to the next."""
    is_run = F.col("kind") == OUTSIDE
    some = parts.where(is_run | ((F.col("kind") == SEEN) & (F.col("is_first") == 0)))
    seen_first = "start_ns", F.desc("kind"), "end_ns", "is_first"
    in_order = Window.partitionBy(*KEYS).orderBy(*seen_first)
    goes_on = is_run & (F.col("is_first") == 1) & (F.coalesce(F.lag("is_last").over(in_order), F.lit(0)) == 1)
    numbered = some.withColumn("is_new", _one(~goes_on))
    whole = in_order.rowsBetween(Window.unboundedPreceding, 0)
    runs = numbered.withColumn("run", F.sum("is_new").over(whole)).where(is_run)
    found = runs.groupBy(*KEYS, "run").agg(
        F.min("start_ns").alias("start_ns"),
        F.max("end_ns").alias("end_ns"),
        F.sum("rows").alias("rows"),
        least("min").alias("min"),
        most("max").alias("max"),
    )
    return found.withColumn("kind", F.lit(OUTSIDE)).select(*_EPISODE)


def resampled(bins: "DataFrame") -> "DataFrame":
    """Put the windows of batches together: a row for each signal and window of time that has a value."""
    place = ("start_ns", *KEYS)
    return (
        with_first(bins, "is_last", place, *_latest())
        .groupBy(*place)
        .agg(
            F.sum("rows").alias("rows"),
            (F.sum("sum") / F.sum(F.when(F.col("numbers") > 0, F.col("numbers")))).alias("mean"),
            least("min").alias("min"),
            most("max").alias("max"),
            *_last(),
        )
    )


def busiest(windows: "DataFrame", count: int) -> "DataFrame":
    """Choose the windows of the signals with most values that are numbers, in the order of time. A signal
    that changes comes before all that do not, then one with a unit: counters and checksums have none."""
    known = windows.where(F.col("mean").isNotNull())
    changes = (most("max") > least("min")).alias("changes")
    measured = (F.max(F.length("unit")) > 0).alias("measured")
    sums = known.groupBy(*KEYS).agg(changes, measured, F.sum("rows").alias("all"))
    order = [F.desc(name) for name in ("changes", "measured", "all")]
    chosen = sums.orderBy(*order, *KEYS).limit(count)
    found = known.join(F.broadcast(chosen), list(KEYS))
    return found.select("start_ns", *KEYS, "rows", "mean", "min", "max").orderBy(*KEYS, "start_ns")


class SignalPlace(NamedTuple):
    """A signal where it was heard, and in which unit: how many values it has there, whether they are
    numbers, and the first of its texts, by the alphabet."""

    gateway: str
    bus: str
    unit: str
    rows: int
    are_numbers: bool
    text: str | None = None

    def said(self) -> str:
        """Return the place as words."""
        return f"{self.bus} of {self.gateway}{f' in {self.unit}' if self.unit else ''}"


def names_of(rows: "DataFrame") -> "dict[str, list[SignalPlace]]":
    """Return the names of the signals in long rows, in order, and where each was heard, most often first."""
    counts = F.count(F.lit(1)).alias("rows"), F.count("value").alias("numbers"), F.min("text").alias("text")
    found = rows.groupBy(_name().alias("name"), *SignalPlace._fields[:3]).agg(*counts)
    names: dict[str, list[SignalPlace]] = {}
    for row in found.orderBy("name", F.desc("rows"), *SignalPlace._fields[:3]).limit(NAMES_MOST).collect():
        heard = SignalPlace(row.gateway, row.bus, row.unit, row.rows, row.numbers > 0, row.text)
        names.setdefault(row.name, []).append(heard)
    return names


def signals_in(rows: "DataFrame") -> set[str]:
    """Return the names of the signals in rows that have `KEYS`, at most `NAMES_MOST`."""
    return {row.name for row in rows.select(_name().alias("name")).distinct().limit(NAMES_MOST).collect()}


def heard_at(rows: "DataFrame", places: "Mapping[str, SignalPlace]") -> "DataFrame":
    """Select of each signal the values of one place."""
    wanted = F.lit(False)
    for name, one in places.items():
        is_there = (F.col("gateway") == one.gateway) & (F.col("bus") == one.bus) & (F.col("unit") == one.unit)
        wanted = wanted | ((_name() == name) & is_there)
    return rows.where(wanted)


def _name() -> "Column":
    whole = F.concat_ws("/", "pattern", "signal")
    return F.when(F.col("pattern") == "/", F.col("signal")).otherwise(whole)


def intervals(rows: "DataFrame", condition: Condition) -> "DataFrame":
    """Find from when until when a condition holds, in long rows of its signals: between two values a signal
    has the first of them, and of two at one time the greater.

    A signal that has no value yet makes no condition true, nor does NaN, but of a condition that asks for it
    (`isnan`): to engines it is more than all numbers. The values are put in one order, by one task.
    """
    name = F.lower(_name())
    one = Window.partitionBy(F.lit(0))
    in_time, in_order = one.orderBy("ts_ns"), one.orderBy("ts_ns", "value", "text")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    held = [
        F.last(_valued(name, end), ignorenulls=True).over(so_far).alias(f"v{place}")
        for place, end in enumerate(condition.names)
    ]
    is_last = ~F.lead("ts_ns").over(in_order).eqNullSafe(F.col("ts_ns"))  # of those at one time
    at_once = rows.select("ts_ns", *held, is_last.alias("is_last")).where("is_last")
    known = at_once.select("ts_ns", *_parts(condition))
    if "nan" not in condition.sql.lower():
        numbers = [column for column in known.columns if column[0] == "s"]
        known = known.withColumns({name: F.when(~F.isnan(name), F.col(name)) for name in numbers})
    holds = F.coalesce(F.expr(condition.sql), F.lit(False)).alias("holds")
    moments = known.select("ts_ns", holds)
    before = F.coalesce(F.lag("holds").over(in_time), F.lit(False))
    end = F.max("ts_ns").over(one) + 1
    turns = moments.withColumns({"before": before, "end": end}).where(F.col("holds") != F.col("before"))
    until = F.coalesce(F.lead("ts_ns").over(in_time), F.col("end"))
    found = turns.select(F.col("ts_ns").alias("start_ns"), until.alias("end_ns"), "holds").where("holds")
    seconds = ((F.col("end_ns") - F.col("start_ns")) / 1e9).alias("seconds")
    return found.select("start_ns", "end_ns", seconds).orderBy("start_ns")


def _parts(condition: Condition) -> "Iterator[Column]":
    """Yield the columns of a condition: the number and the text of each of its signals."""
    for place in range(len(condition.names)):
        yield F.col(f"v{place}.value").alias(f"s{place}")
        yield F.col(f"v{place}.text").alias(f"t{place}")


def _valued(name: "Column", end: str) -> "Column":
    """Return the value of a row, number and text together; null if it is one of another signal."""
    is_it = (name == end.lower()) | name.endswith(f"/{end.lower()}")
    return F.when(is_it, F.struct("value", "text"))
