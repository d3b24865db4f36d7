"""The quality of a capture: holes in it, rows that it has twice, clocks that went back.

The rows of a recorder's run are numbered as they were recorded. A few dozen rows with following numbers are
one bin: so a pass over narrow columns shows where numbers are missing or double, and where time goes back.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import Kind
from pipeline.analysis.shared.holes import holes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

HOLE: Final = "hole"
DOUBLED: Final = "doubled"
CLOCK_BACK: Final = "clock back"

BACK_NS: Final = 1_000_000_000
"""A clock that goes back by less is not shown: rows of several hubs are not recorded in order of time."""

_BIN: Final = 64  # rows, for each of which a BIGINT has a bit
_NUMBERS: Final = f"cast(bit_count(bit_or(shiftleft(1L, cast(cap_seq % {_BIN} as int)))) as bigint)"
"""The count of the numbers in a bin. To count them as distinct ones, an engine would keep each row's."""
_DAY_NS: Final = 86_400_000_000_000
_RUN: Final = ("gateway", "boot")


def flaws(rows: "DataFrame", taken: "list[Row]") -> "DataFrame":
    """Find the flaws: `kind`, `gateway`, `from_ns`, `to_ns`, and `n`: how many rows are there again, or by
    how many ns a clock went back. `taken`: the rows of `pipeline.analysis.shared.inventory.take`.

    A clock that goes forward looks like silence, so it is not found, nor one that goes back in the only 64
    rows of a run.
    """
    bins = _bins(rows)
    found = _doubled(bins).unionByName(_back(bins))
    missing = holes(rows, taken, {})
    if missing is not None:
        nothing = F.lit(None).cast("bigint").alias("n")
        gateway = F.col("unseen").alias("gateway")
        gone = missing.select(_kind(HOLE), gateway, "from_ns", "to_ns", nothing)
        found = found.unionByName(gone)
    return found.orderBy("from_ns", "gateway", "kind", "to_ns")


def completeness(rows: "DataFrame") -> "DataFrame":
    """Count by gateway and day (UTC) how many rows are there, and how many numbers between them are not.

    Numbers that are missing count on the day of the next row. `complete` is the share that is there.
    """
    found = _missing(_bins(rows, _day())).groupBy("gateway", "day").agg(
        F.sum("numbers").alias("rows"),
        F.sum("missing").alias("missing"),
        F.min("from_ns").alias("from_ns"), F.max("to_ns").alias("to_ns"),
    )  # fmt: skip
    share = (F.col("rows") / (F.col("rows") + F.col("missing"))).alias("complete")
    day = F.col("day").cast("string").alias("day")
    return found.select("gateway", day, "rows", "missing", share, "from_ns", "to_ns").orderBy(
        "day", "gateway"
    )


def _missing(bins: "DataFrame") -> "DataFrame":
    """Add to bins by day how many numbers are `missing` before and in each.

    Days may come in any order: a clock goes back. If rows of two days alternate in a bin, as at midnight,
    those of the whole bin count on the day of its last row.
    """
    run, whole = Window.partitionBy(*_RUN).orderBy("first"), Window.partitionBy(*_RUN, "bin")
    earlier = F.max("last").over(run.rowsBetween(Window.unboundedPreceding, -1))
    missing = F.col("last") - F.coalesce(earlier, F.col("first") - 1) - F.col("numbers")
    alternate = F.min("missing").over(whole) < 0
    is_last = F.col("last") == F.max("last").over(whole)
    once = F.when(is_last, F.greatest(F.sum("missing").over(whole), F.lit(0).cast("bigint"))).otherwise(0)
    found = bins.withColumn("missing", missing)
    return found.withColumn("missing", F.when(alternate, once).otherwise(F.col("missing")))


def _day() -> "Column":
    return F.expr(f"date_from_unix_date(cast(ts_ns div {_DAY_NS} as int))").alias("day")


def _bins(rows: "DataFrame", *keys: "Column") -> "DataFrame":
    recorded = rows.where(F.col("kind") != Kind.CONTENTS.value)
    return recorded.groupBy(*_RUN, *keys, F.expr(f"cap_seq div {_BIN}").alias("bin")).agg(
        F.count(F.lit(1)).alias("rows"), F.expr(_NUMBERS).alias("numbers"),
        F.min("ts_ns").alias("from_ns"), F.max("ts_ns").alias("to_ns"),
        F.min("cap_seq").alias("first"), F.max("cap_seq").alias("last"),
    )  # fmt: skip


def _doubled(bins: "DataFrame") -> "DataFrame":
    """Find the runs of which rows are there twice: in a copy of a file, under another name."""
    twice = bins.where("rows > numbers").groupBy(*_RUN)
    times = F.min("from_ns").alias("from_ns"), F.max("to_ns").alias("to_ns")
    found = twice.agg(*times, F.sum(F.col("rows") - F.col("numbers")).alias("n"))
    return found.select(_kind(DOUBLED), "gateway", "from_ns", "to_ns", "n")


def _back(bins: "DataFrame") -> "DataFrame":
    """Find where the rows of a run are older than those before: from the oldest such row, to the newest one
    before. All bins until the clock has come to where it was are one jump."""
    in_order = Window.partitionBy(*_RUN).orderBy("bin")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    is_back = F.coalesce(F.col("was_ns") - F.col("from_ns") > BACK_NS, F.lit(False))
    found = bins.withColumn("was_ns", F.max("to_ns").over(before)).withColumn("back", is_back)
    begins = (F.col("back") & ~F.coalesce(F.lag("back").over(in_order), F.lit(False))).cast("int")
    jumps = found.withColumn("jump", F.sum(begins).over(in_order)).where("back").groupBy(*_RUN, "jump")
    spans = jumps.agg(F.min("from_ns").alias("from_ns"), F.max("was_ns").alias("to_ns"))
    by_ns = (F.col("to_ns") - F.col("from_ns")).alias("n")
    return spans.select(_kind(CLOCK_BACK), "gateway", "from_ns", "to_ns", by_ns)


def _kind(word: str) -> "Column":
    return F.lit(word).alias("kind")
