"""Names that share a token, and tokens without a name, over millions of names."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.analysis.frames import frames, local_table
from pipeline.errors import PipelineError
from pipeline.input.read import is_remote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def names(spark: "SparkSession", file: str) -> "DataFrame":
    """Read names, one a line, # begins a comment: `name` and its `token`. Raises `PipelineError`."""
    if not is_remote(file) and not Path(file).is_file():
        raise PipelineError(f"{file}: no such file of names")
    lines = spark.read.text(file).select(F.trim(F.regexp_replace("value", "#.*$", "")).alias("name"))
    return lines.where("name <> ''").distinct().withColumn("token", token("name"))


def looked_up(named: "DataFrame", wanted: set[int]) -> dict[int, str]:
    """Collect the names of `wanted` tokens; names that share a token stand together, as "a | b"."""
    table = local_table(named.sparkSession, {"token": int}, [[token] for token in sorted(wanted)])
    found = named.join(F.broadcast(table), "token").groupBy("token")
    rows = found.agg(F.array_join(F.sort_array(F.collect_list("name")), " | ").alias("name")).collect()
    return {row.token: row.name for row in rows}


def token(column: str) -> "Column":
    """Compute the token of a name, as `bus.wire.pattern.token` does: a fold over its characters' code
    points."""
    characters = F.split(F.col(column), "")
    mask = F.lit(0xFFFFFFFF).cast("bigint")

    def step(h: "Column", character: "Column") -> "Column":
        return (h * F.lit(65599) + F.ascii(character)).bitwiseAND(mask)

    folded = F.aggregate(F.filter(characters, lambda c: c != ""), F.lit(0).cast("bigint"), step)
    return folded.bitwiseXOR(F.shiftright(folded, 16))


def collisions(named: "DataFrame") -> "DataFrame":
    """Find the tokens that several names have, each with its names.

    Counting first leaves few rows to gather names for.
    """
    shared = named.groupBy("token").agg(F.count(F.lit(1)).alias("names")).where("names > 1")
    found = named.join(shared.select("token"), "token", "left_semi")
    return found.groupBy("token").agg(F.sort_array(F.collect_list("name")).alias("names")).orderBy("token")


def unknown(rows: "DataFrame", named: "DataFrame") -> "DataFrame":
    """Find captured tokens without a name: their place in a pattern and how often they came, the most
    frequent first.

    Patterns are counted before they are taken apart: there are fewer of them than frames.
    """
    patterns = frames(rows).where("tokens is not null").groupBy("tokens").agg(F.count(F.lit(1)).alias("rows"))
    apart = patterns.select("rows", F.posexplode("tokens").alias("place", "token"))
    counted = apart.groupBy("token", "place").agg(F.sum("rows").alias("rows"))
    known = named.select("token").distinct()
    return counted.join(known, "token", "left_anti").orderBy(F.desc("rows"), "token", "place")
