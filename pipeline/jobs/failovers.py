"""Service gaps and takeovers, from the traffic alone: who puts frames onto a segment, and since when
nobody does.

Bridges of one name on several gateways are candidates for one service (DESIGN section 6), so a service is
a bridge's name, a segment, and the first token of what it carries.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.engine.kept import kept
from pipeline.frames import first_token, frames, on_bridge, received, sent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GAP_MS: Final = 100
BIN_MS: Final = 10
MISSED_LEAST: Final = 3
"""Frames that came meanwhile on other segments: fewer prove no gap, but a quiet time."""

ECHOES_MOST: Final = 10
"""Of so many frames that a segment brings, one that is put there is an echo; as many prove that others
came."""

_MS: Final = 1_000_000
_EVENT: Final = ("bus", "hub", "token", "from", "to", "start_ns", "end_ns", "gap_ns")


def activity(rows: "DataFrame", token: "Column") -> "DataFrame":
    """How many frames each hub received from and put onto each segment in each bin of time; first and
    last."""
    return (
        frames(rows)
        .withColumn("token", token)
        .groupBy("bus", "hub", "token", "gateway", "dir", F.expr(f"ts_ns div {BIN_MS * _MS}").alias("bin"))
        .agg(F.count(F.lit(1)).alias("n"), F.min("ts_ns").alias("start_ns"), F.max("ts_ns").alias("end_ns"))
    )


def service(active: "DataFrame") -> "DataFrame":
    """Which gateway's bridges put frames onto each segment, in each bin.

    A segment that brings a pattern itself, and is given a few frames of it, has echoes and no service.
    """
    put = active.where(on_bridge() & sent())
    given = put.groupBy("bus", "token").agg(F.sum("n").alias("given"))
    of_hub = active.where(received()).groupBy("bus", "token", "gateway", "hub").agg(F.sum("n").alias("n"))
    brought = of_hub.groupBy("bus", "token").agg(F.max("n").alias("brought"))
    both = given.join(brought, ["bus", "token"], "left")
    echoes = both.where(F.col("given") * ECHOES_MOST < F.coalesce("brought", F.lit(0)))
    return put.drop("dir", "n").join(
        F.broadcast(echoes.select("bus", "token")), ["bus", "token"], "left_anti"
    )


def heard(active: "DataFrame") -> "DataFrame":
    """Frames received, by segment and bin: the most that one hub heard."""
    return active.where(received()).groupBy("bus", "token", "bin").agg(F.max("n").alias("n"))


def runs(served: "DataFrame", gap_ms: int) -> "DataFrame":
    """Each gateway's unbroken times of service: it put something at least every `gap_ms`."""
    own = Window.partitionBy("bus", "hub", "token", "gateway").orderBy("bin")
    pause = F.col("start_ns") - F.lag("end_ns").over(own) > gap_ms * _MS
    numbered = served.withColumn("new", F.coalesce(pause.cast("int"), F.lit(0))).withColumn(
        "run", F.sum("new").over(own)
    )
    return numbered.groupBy("bus", "hub", "token", "gateway", "run").agg(
        F.min("start_ns").alias("start_ns"), F.max("end_ns").alias("end_ns")
    )


def breaks(run: "DataFrame", came: "DataFrame", gap_ms: int) -> "DataFrame":
    """Where a service paused for `gap_ms`, or went to another gateway; to the end of the capture, if it
    stayed away.

    Gateways that serve side by side, as on a trunk which all share, do not take over from each other.
    """
    ends = came.agg((F.max("bin") * BIN_MS * _MS).alias("start_ns"))
    closing = (
        run.groupBy("bus", "hub", "token").agg(F.max("end_ns").alias("last")).crossJoin(F.broadcast(ends))
    )
    tail = closing.where("start_ns > last").select(
        "bus",
        "hub",
        "token",
        F.lit(None).cast("string").alias("gateway"),
        "start_ns",
        F.col("start_ns").alias("end_ns"),
    )
    in_time = Window.partitionBy("bus", "hub", "token").orderBy("start_ns", "end_ns")
    before = F.max(F.struct("end_ns", "gateway")).over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    joined = run.drop("run").unionByName(tail).withColumn("before", before).where("before is not null")
    gap = F.col("start_ns") - F.col("before.end_ns")
    taken = (
        ~F.col("gateway").eqNullSafe(F.col("before.gateway"))
        & (gap > -gap_ms * _MS)
        & F.col("gateway").isNotNull()
    )
    return joined.where((gap > gap_ms * _MS) | taken).select(
        "bus", "hub", "token", F.col("before.gateway").alias("from"), F.col("gateway").alias("to"),
        F.col("before.end_ns").alias("start_ns"), F.col("start_ns").alias("end_ns"), gap.alias("gap_ns"),
    )  # fmt: skip


def proven(found: "DataFrame", came: "DataFrame") -> "DataFrame":
    """`found` with `meanwhile`: frames that came on the busiest other segment, less those that the
    segment itself brought (they were not for it). Quiet times are left out."""
    width = BIN_MS * _MS
    other = came.select(F.col("bus").alias("other"), F.col("token").alias("its"), "bin", "n")
    inside = (
        (F.col("its") == F.col("token"))
        & (F.col("bin") * width >= F.col("start_ns"))
        & ((F.col("bin") + 1) * width <= F.col("end_ns"))
    )
    keys = ["bus", "hub", "token", "start_ns", "end_ns"]
    own = F.col("other") == F.col("bus")
    counted = (
        F.broadcast(found.select(*keys)).join(other, inside)
        .groupBy(*keys, "other").agg(F.sum("n").alias("n"))
        .groupBy(*keys).agg(
            F.max(F.when(~own, F.col("n"))).alias("others"), F.max(F.when(own, F.col("n"))).alias("own")
        )
    )  # fmt: skip
    meanwhile = F.greatest(F.coalesce("others", F.lit(0)) - F.coalesce("own", F.lit(0)), F.lit(0))
    joined = found.join(counted, keys, "left").withColumn("meanwhile", meanwhile)
    taken = F.col("to").isNotNull() & (F.col("to") != F.col("from"))
    enough = F.greatest(F.lit(MISSED_LEAST), F.coalesce("own", F.lit(0)) / ECHOES_MOST)
    return joined.where(taken | (F.col("meanwhile") >= enough)).select(*_EVENT, "meanwhile")


def failovers(rows: "DataFrame", by_pattern: bool = True, gap_ms: int = GAP_MS) -> "DataFrame":
    """Takeovers (`from` is not `to`) and service gaps (`to` is null: nobody came), in order of time."""
    token = first_token() if by_pattern else F.lit(-1).cast("bigint")
    active = kept(activity(rows, token))
    came = heard(active)
    found = kept(breaks(runs(service(active), gap_ms), came, gap_ms))
    return proven(found, came).orderBy("start_ns", "bus", "hub", "token")
