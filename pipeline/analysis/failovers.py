"""Service gaps and takeovers, from the traffic: which gateway puts frames onto a segment, and when none does.

Bridges of one name on several gateways are candidates for one service (docs/failover.md), so a service is a
bridge's name, a segment, and the first token of its frames.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.shared import holes, inventory, trunks
from pipeline.analysis.shared.events import with_cause
from pipeline.analysis.shared.frames import bins, first_token, frames, on_bridge, received, sent
from pipeline.analysis.shared.service import BIN_NS, GAP_MS, are_missed, is_pause, is_served, is_whole_bin
from pipeline.cache import cached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_SERVICE: Final = ("bus", "hub", "token")
_EVENT: Final = (*_SERVICE, "from", "to", "start_ns", "end_ns", "gap_ns")


def activity(rows: "DataFrame") -> "DataFrame":
    """Count the frames of each first token that each hub received from and put onto each segment in each bin,
    with first and last time."""
    of_frames = frames(rows).withColumn("token", first_token())
    return of_frames.groupBy(*_SERVICE, "gateway", "dir", bins(BIN_NS).alias("bin")).agg(
        F.count(F.lit(1)).alias("n"), F.min("ts_ns").alias("start_ns"), F.max("ts_ns").alias("end_ns")
    )


def service(active: "DataFrame") -> "DataFrame":
    """Find which gateway's bridges serve each segment in each bin."""
    put = active.where(on_bridge() & sent())
    keys = ["bus", "token"]
    given = put.groupBy(*keys).agg(F.sum("n").alias("given"))
    of_hub = active.where(received()).groupBy(*keys, "hub").agg(F.sum("n").alias("n"))
    brought = of_hub.groupBy(*keys).agg(F.max("n").alias("brought"))
    both = given.join(brought, keys, "left")
    echoes = both.where(~is_served(F.col("given"), F.coalesce("brought", F.lit(0)))).select(*keys)
    return put.drop("dir", "n").join(F.broadcast(echoes), keys, "left_anti")


def heard(active: "DataFrame") -> "DataFrame":
    """Count the frames received by segment and bin: those of the hub that heard most."""
    of_hub = active.where(received()).groupBy("bus", "token", "bin", "hub").agg(F.sum("n").alias("n"))
    return of_hub.groupBy("bus", "token", "bin").agg(F.max("n").alias("n"))


def runs(served: "DataFrame", gap_ms: int) -> "DataFrame":
    """Find each gateway's unbroken times of service, in which it put something at least every `gap_ms`."""
    own = Window.partitionBy(*_SERVICE, "gateway").orderBy("bin")
    pause = is_pause(F.col("start_ns") - F.lag("end_ns").over(own), gap_ms)
    new = served.withColumn("new", F.coalesce(pause.cast("int"), F.lit(0)))
    return (
        new.withColumn("run", F.sum("new").over(own))
        .groupBy(*_SERVICE, "gateway", "run")
        .agg(F.min("start_ns").alias("start_ns"), F.max("end_ns").alias("end_ns"))
    )


def breaks(run: "DataFrame", came: "DataFrame", gap_ms: int) -> "DataFrame":
    """Find where a service paused for `gap_ms`, or went to another gateway; to the end of the capture if it
    stayed away.

    Gateways that serve side by side, as on a trunk which all share, do not take over from each other.
    """
    ends = came.agg((F.max("bin") * BIN_NS).alias("start_ns"))
    closing = run.groupBy(*_SERVICE).agg(F.max("end_ns").alias("last")).crossJoin(F.broadcast(ends))
    nobody, end_ns = F.lit(None).cast("string").alias("gateway"), F.col("start_ns").alias("end_ns")
    tail = closing.where("start_ns > last").select(*_SERVICE, nobody, "start_ns", end_ns)
    in_time = Window.partitionBy(*_SERVICE).orderBy("start_ns", "end_ns", "gateway")
    before = F.max(F.struct("end_ns", "gateway")).over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    joined = run.drop("run").unionByName(tail).withColumn("before", before).where("before is not null")
    gap = F.col("start_ns") - F.col("before.end_ns")
    taken = (
        ~F.col("gateway").eqNullSafe(F.col("before.gateway"))
        & is_pause(gap, -gap_ms)
        & F.col("gateway").isNotNull()
    )
    return joined.where(is_pause(gap, gap_ms) | taken).select(
        *_SERVICE, F.col("before.gateway").alias("from"), F.col("gateway").alias("to"),
        F.col("before.end_ns").alias("start_ns"), F.col("start_ns").alias("end_ns"), gap.alias("gap_ns"),
    )  # fmt: skip


def proven(found: "DataFrame", came: "DataFrame") -> "DataFrame":
    """Leave out quiet times. `meanwhile` counts frames on the busiest other segment, less those that the
    segment itself brought (they were not for it)."""
    other = came.select(F.col("bus").alias("other"), F.col("token").alias("its"), "bin", "n")
    inside = (F.col("its") == F.col("token")) & is_whole_bin(*map(F.col, ("bin", "start_ns", "end_ns")))
    keys = [*_SERVICE, "start_ns", "end_ns"]
    own = F.col("other") == F.col("bus")
    counted = (
        F.broadcast(found.select(*keys)).join(other, inside)
        .groupBy(*keys, "other").agg(F.sum("n").alias("n"))
        .groupBy(*keys).agg(
            F.max(F.when(~own, F.col("n"))).alias("others"), F.max(F.when(own, F.col("n"))).alias("own")
        )
    )  # fmt: skip
    others, brought = (F.coalesce(name, F.lit(0)) for name in ("others", "own"))
    taken = F.col("to").isNotNull() & (F.col("to") != F.col("from"))
    shown = found.join(counted, keys, "left").where(taken | are_missed(others, brought))
    return shown.select(*_EVENT, F.greatest(others - brought, F.lit(0)).alias("meanwhile"))


def recorded(found: "DataFrame", rows: "DataFrame", taken: "list[Row]") -> "DataFrame":
    """Leave out pauses in which the recorder of the gateway that served missed rows: nobody knows of them."""
    unsure = holes.holes(rows, taken, {})
    if unsure is None:
        return found
    inside = F.expr("unseen = `from` AND from_ns <= end_ns AND to_ns >= start_ns")
    is_pause_of_one = F.coalesce("to", "from") == F.col("from")
    return found.join(F.broadcast(unsure), inside & is_pause_of_one, "left_anti")


def failovers(rows: "DataFrame", gap_ms: int = GAP_MS, entries: "list[Row] | None" = None) -> "DataFrame":
    """Find takeovers (`from` is not `to`) and service gaps (`to` is null: nobody came), in order of time.
    `entries` are the capture's inventory, which is taken if it is not given.

    Buses that trunks join are one segment: a candidate may serve it at another bus than the one before.
    `cause` is what the candidates said about it, where that is in the capture
    (`pipeline.analysis.shared.events`).
    """
    taken = inventory.take(rows) if entries is None else entries
    active = cached(activity(trunks.in_rows(rows, trunks.joined(inventory.topologies(taken)))))
    came = heard(active)
    found = cached(recorded(breaks(runs(service(active), gap_ms), came, gap_ms), rows, taken))
    return with_cause(proven(found, came), rows).orderBy("start_ns", "bus", "hub", "token")
