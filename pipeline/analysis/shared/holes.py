"""Holes: times in which a recorder missed rows. Nobody can say what passed there, so no fault is found there.

The numbers of rows are dense within a gateway and a run of its recorder. Where some are missing, the recorder
could not keep up, or a file is gone.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import Kind
from pipeline.analysis.shared import inventory
from pipeline.analysis.shared.clocks import at_one_clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_BIN: Final = 4096  # rows; only those of bins with holes are looked at one by one
_RUN: Final = ("gateway", "boot")


def holes(rows: "DataFrame", taken: "list[Row]", ahead: Mapping[str, int]) -> "DataFrame | None":
    """Find the holes: `unseen` (a gateway), `from_ns`, `to_ns`, by one clock. None if there is none.

    Two passes over narrow columns, of those gateways only that have holes by the inventory.
    """
    found = inventory.uncaptured(taken)
    gateways = sorted({gateway for gateway, _, _, missed, gone, *_ in found if missed or gone})
    if not gateways:
        return None
    recorded = rows.where(F.col("gateway").isin(gateways) & (F.col("kind") != Kind.CONTENTS.value))
    numbers = at_one_clock(recorded, ahead).select(*_RUN, "cap_seq", "at_ns")
    numbers = numbers.withColumn("bin", F.expr(f"cap_seq div {_BIN}"))
    bins = numbers.groupBy(*_RUN, "bin").agg(
        F.count(F.lit(1)).alias("n"),
        F.min("cap_seq").alias("first"), F.max("cap_seq").alias("last"),
        F.min("at_ns").alias("from_ns"), F.max("at_ns").alias("to_ns"),
    )  # fmt: skip
    partial = bins.where("n < last - first + 1").select(*_RUN, "bin")
    rows_there = numbers.join(F.broadcast(partial), [*_RUN, "bin"], "left_semi")
    one = F.col("cap_seq").alias("first"), F.col("cap_seq").alias("last")
    each = rows_there.select(
        *_RUN, "bin", *one, F.col("at_ns").alias("from_ns"), F.col("at_ns").alias("to_ns")
    )
    return _between(bins, _RUN).unionByName(_between(each, (*_RUN, "bin")))


def _between(spans: "DataFrame", keys: tuple[str, ...]) -> "DataFrame":
    """Find the holes between spans of numbers that follow each other."""
    in_order = Window.partitionBy(*keys).orderBy("first")
    before = (F.lag(name).over(in_order) for name in ("last", "to_ns"))
    named = zip(before, ("last_before", "since_ns"), strict=True)
    found = spans.withColumns({name: column for column, name in named}).where("first - last_before > 1")
    times = F.least("since_ns", "from_ns").alias("from_ns"), F.greatest("since_ns", "from_ns").alias("to_ns")
    return found.select(F.col("gateway").alias("unseen"), *times)
