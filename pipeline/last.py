"""The last value of each pattern."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.frames import frames, received

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def entering(rows: "DataFrame") -> "DataFrame":
    """Frames as they came in from a segment: what a gateway received."""
    return frames(rows).where(received() & F.col("tokens").isNotNull())


def last(rows: "DataFrame") -> "DataFrame":
    """One row a pattern: tokens, when and where its latest frame was first received, its payload, how many came.

    A frame crosses several gateways, each with its own clock: of its rows the one counts that is nearest to where
    it entered, and that is a hub of the segment itself if one was recorded.
    """
    came = entering(rows).withColumn("pattern", F.xxhash64("tokens"))
    rank = F.when(F.col("hub").startswith("bridge "), F.lit(0)).otherwise(F.lit(1))
    ranked = came.withColumn("near", rank)
    newest = ranked.groupBy("pattern", "near").agg(
        F.max("ts_ns").alias("ts_ns"), F.count(F.lit(1)).alias("rows")
    )
    nearest = newest.groupBy("pattern").agg(F.max("near").alias("near"))
    chosen = newest.join(nearest, ["pattern", "near"])
    found = ranked.join(chosen, ["pattern", "near", "ts_ns"]).dropDuplicates(["pattern"])
    return found.select("tokens", "ts_ns", "gateway", "bus", "payload", "rows").orderBy("tokens")
