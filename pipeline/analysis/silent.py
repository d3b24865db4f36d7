"""Bridges that were silent while frames were lost that had to pass them: killed, frozen or cut off.

A bridge is its hubs of one name on all gateways: its candidates take over from each other. One that passed
nothing for longer than a pause, and without which a lost frame cannot have reached its segment, is to blame.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.clocks import at_one_clock
from pipeline.analysis.events import takeovers
from pipeline.analysis.explain import LOST, NO_BRIDGE
from pipeline.analysis.frames import frames, local_table, on_bridge, received, told_so
from pipeline.analysis.service import BIN_NS, GAP_MS, MISSED_LEAST, is_pause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLACK_NS: Final = 10_000_000
"""A frame that entered so shortly before a silence was still on its way when that began."""
_BEGAN_INSIDE: Final = f"began_ns BETWEEN from_ns AND to_ns + {SLACK_NS}"


class Need(NamedTuple):
    """Frames of a home (`first` heard them there) and flow cannot reach a `segment` without a bridge."""

    first: str
    flow: int
    segment: str
    bridge: str


def entered(rows: "DataFrame", lost: "DataFrame") -> "DataFrame":
    """Find when the frames of `lost` (`key`, `episode`) entered, by the hub that heard them first."""
    heard = rows.where(received()).join(F.broadcast(lost), ["key", "episode"], "left_semi")
    first = F.min_by(F.struct("hub", "bus"), "at_ns").over(Window.partitionBy("key", "episode"))
    found = heard.select("key", "episode", "hub", "bus", "at_ns", first.alias("its"))
    return found.where("its.hub = hub AND its.bus = bus").select("key", "episode", "at_ns")


def silences(
    rows: "DataFrame", ahead: Mapping[str, int], end_ns: int, has_events: bool = False, gap_ms: int = GAP_MS
) -> "DataFrame":
    """Find when bridges passed nothing for longer than `gap_ms`: `silent`, `from_ns`, `to_ns`, and `last`.

    `last` is the gateway that passed something last. The silence of one that passes nothing any more lasts
    until `end_ns`. Times are those of one clock. If the capture `has_events`, a shorter silence counts too
    if a candidate took over at its end: nobody was in charge until then.
    """
    of_bridges = at_one_clock(frames(rows).where(on_bridge()).select("hub", "gateway", "ts_ns"), ahead)
    bin_of = F.expr(f"at_ns div {BIN_NS}").alias("bin")
    times = F.min("at_ns").alias("at_ns"), F.max("at_ns").alias("from_ns")
    of_gateways = of_bridges.groupBy("hub", "gateway", bin_of).agg(*times)
    in_bins = of_gateways.groupBy("hub", "bin").agg(
        F.min("at_ns").alias("at_ns"),
        F.max("from_ns").alias("from_ns"),
        F.max_by("gateway", "from_ns").alias("last"),
    )
    after_ns = F.lead("at_ns").over(Window.partitionBy("hub").orderBy("bin"))
    found = in_bins.select(
        F.col("hub").alias("silent"), "from_ns", F.coalesce(after_ns, F.lit(end_ns)).alias("to_ns"), "last"
    )
    is_long = is_pause(F.col("to_ns") - F.col("from_ns"), gap_ms)
    if not has_events:
        return found.where(is_long)
    taken = found.where(~is_long).join(_taken_over(rows, ahead), "silent").where(_BEGAN_INSIDE)
    return found.where(is_long).unionByName(taken.drop("began_ns").distinct())


def _taken_over(rows: "DataFrame", ahead: Mapping[str, int]) -> "DataFrame":
    """Find when candidates began to forward: `silent` (their bridge), `began_ns`."""
    began = at_one_clock(takeovers(rows), ahead)
    return F.broadcast(began.select(F.col("hub").alias("silent"), F.col("at_ns").alias("began_ns")))


def blamed(
    findings: "DataFrame", rows: "DataFrame", silent: "DataFrame", need: Sequence[Need]
) -> "DataFrame":
    """Blame losses on a bridge that was silent at the time, and without which they cannot have arrived.

    `rows` are those of the suspects, and `silent` is from `silences`. A bridge that passes nothing because
    there was nothing to pass is silent too: so at least `MISSED_LEAST` frames must have been lost in one
    silence.
    """
    table = local_table(
        findings.sparkSession, {"first": str, "flow": int, "segment": str, "silent": str}, need
    )
    keys, one = ["key", "episode", "segment"], ["silent", "from_ns"]
    lost = findings.where(F.col("kind") == LOST).join(F.broadcast(table), ["first", "flow", "segment"])
    points = lost.select(*keys, "silent").join(entered(rows, lost.select(*keys[:2])), keys[:2])
    near = F.col("at_ns").between(F.col("from_ns") - SLACK_NS, F.col("to_ns") + SLACK_NS)
    inside = points.join(silent, "silent").where(near)
    many = (
        inside.groupBy(*one).agg(F.count_distinct("at_ns").alias("frames")).where(f"frames >= {MISSED_LEAST}")
    )
    guilty = (
        inside.join(many, one).groupBy(*keys).agg(F.min(F.struct("from_ns", "silent", "last")).alias("by"))
    )
    joined = findings.join(guilty, keys, "left")
    is_blamed = F.col("by").isNotNull() & (F.col("kind") == LOST)
    told = {"stage": F.lit(NO_BRIDGE), "gateway": F.col("by.last"), "hub": F.col("by.silent")}
    return told_so(joined, is_blamed, told).drop("by")
