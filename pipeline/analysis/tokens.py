"""Names that share a token, and captured tokens without a name."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from bus.names import Names
from pipeline.analysis.shared.frames import frames, local_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def collisions(spark: "SparkSession", names: Names) -> "DataFrame":
    """List the tokens that several names have, each with its names."""
    shared = names.collisions()
    return local_table(spark, {"token": int, "names": list[str]}, [[t, shared[t]] for t in sorted(shared)])


def unknown(rows: "DataFrame", names: Names) -> "DataFrame":
    """Find captured tokens without a name: their place in a pattern and how often they came, the most
    frequent first.

    Patterns are counted before they are taken apart: there are fewer of them than frames.
    """
    patterns = frames(rows).where("tokens is not null").groupBy("tokens").agg(F.count(F.lit(1)).alias("rows"))
    apart = patterns.select("rows", F.posexplode("tokens").alias("place", "token"))
    counted = apart.groupBy("token", "place").agg(F.sum("rows").alias("rows"))
    known = local_table(rows.sparkSession, {"token": int}, [[t] for t in names.tokens()])
    return counted.join(known, "token", "left_anti").orderBy(F.desc("rows"), "token", "place")
