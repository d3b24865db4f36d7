"""The last value of each pattern."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.analysis.shared.chosen import first_of
from pipeline.analysis.shared.frames import frames, on_bridge, received

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS = ("pattern", "near")
_SHOWN = ("ts_ns", "tokens", "gateway", "bus", "payload")


def newest(rows: "DataFrame", again: bool = False) -> "DataFrame":
    """Find the latest row received of each pattern, by bridges (`near` 0) and by hubs of one segment (1)
    apart.

    `again`: `rows` are results of this function, to be merged. There are two steps, the first with numbers
    only: the latest time of each, then the row that has it; of several the one with the greatest payload.
    """
    came = rows if again else _received(rows)
    times = came.groupBy(*_KEYS).agg(F.max("ts_ns").alias("ts_ns"), F.sum("rows").alias("all"))
    latest = came.join(times, [*_KEYS, "ts_ns"])
    best = first_of(latest, _KEYS, F.desc("payload"), F.desc("gateway"), F.desc("bus"))
    return best.select(*_KEYS, *_SHOWN, F.col("all").alias("rows"))


def _received(rows: "DataFrame") -> "DataFrame":
    came = frames(rows).where(received() & F.col("tokens").isNotNull())
    near = F.when(on_bridge(), F.lit(0)).otherwise(F.lit(1))
    one = F.lit(1).cast("bigint")
    return came.select(
        F.xxhash64("tokens").alias("pattern"), near.alias("near"),
        "ts_ns", "tokens", "gateway", "bus", "payload", one.alias("rows"),
    )  # fmt: skip


def nearest(found: "DataFrame") -> "DataFrame":
    """Choose, of the rows that `newest` found for a pattern, the latest value; of the rows that have it, the
    one nearest to where its frame entered.

    A frame crosses several gateways, each with its own clock. A hub of the segment itself hears it first. The
    clocks of two gateways that heard different values may be further apart than these: then the wrong one of
    them is taken.
    """
    latest = first_of(found, ["pattern"], F.desc("ts_ns"), F.desc("payload"))
    value = latest.select("pattern", F.col("payload").alias("value"))
    same = found.join(value, "pattern").where(F.col("payload") == F.col("value"))
    best = same.groupBy("pattern").agg(F.max("near").alias("near"))
    return same.join(best, list(_KEYS)).select("tokens", "ts_ns", "gateway", "bus", "payload", "rows")


def last(rows: "DataFrame") -> "DataFrame":
    """Show for each pattern its tokens, when and where its latest frame was received, its payload, and how
    many rows came."""
    return nearest(newest(rows)).orderBy("tokens")
