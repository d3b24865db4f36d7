"""Bridges that were silent while frames were lost that had to pass them: killed, frozen or cut off.

A bridge is its hubs of one name on all gateways: its candidates take over from each other. One that passed
nothing for longer than a pause, and without which a lost frame cannot have reached its segment, is to blame.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Kind
from pipeline.analysis.explain import LOST, NO_BRIDGE
from pipeline.analysis.frames import frames, local_table, on_bridge, received
from pipeline.analysis.service import BIN_NS, GAP_MS, MISSED_LEAST, is_pause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Ways = Mapping[str, tuple[frozenset[str], frozenset[str]]]
"""The segments that a bridge takes from, and those that it puts onto, by the name of its hubs."""


def ways_of(taken: "Iterable[Row]") -> Ways:
    """Find the ways of bridges, from the rows of `pipeline.analysis.inventory.take`."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for row in taken:
        if row.kind == Kind.FRAME and row.hub.startswith(BRIDGE):
            found.setdefault(row.hub, (set(), set()))[row.dir == Direction.TX].add(row.bus)
    return {hub: (frozenset(takes), frozenset(puts)) for hub, (takes, puts) in found.items()}


def reached(home: str, ways: Ways, without: str = "") -> set[str]:
    """Return the segments that a frame can reach from its home, perhaps without one bridge."""
    found, before = {home}, set[str]()
    while found != before:
        before = set(found)
        for hub, (takes, puts) in ways.items():
            if hub != without and takes & found:
                found |= puts
    return found


def needed(pairs: Iterable[tuple[str, str]], ways: Ways) -> list[tuple[str, str, str]]:
    """Return (home, target, bridge) for each bridge without which a frame of a home cannot reach a target."""
    wanted = sorted(set(pairs))
    homes = {home for home, _ in wanted}
    without = {(home, hub): reached(home, ways, hub) for home in homes for hub in ways}
    whole = {home: reached(home, ways) for home in homes}
    return [
        (home, target, hub)
        for home, target in wanted
        for hub in sorted(ways)
        if target in whole[home] and target not in without[home, hub]
    ]


def entered(rows: "DataFrame") -> "DataFrame":
    """Find when frames of a `key` and `episode` entered: the times of the hub that heard them first."""
    first = F.min_by(F.struct("hub", "bus"), "at_ns").over(Window.partitionBy("key", "episode"))
    heard = rows.where(received()).withColumn("its", first)
    return heard.where("its.hub = hub AND its.bus = bus").select("key", "episode", "at_ns")


def activity(timed: "DataFrame") -> "DataFrame":
    """Find when bridges passed something, in bins: `hub`, `gateway`, `at_ns` and `until_ns`."""
    of_bridges = frames(timed).where(on_bridge())
    in_bins = of_bridges.groupBy("hub", "gateway", F.expr(f"at_ns div {BIN_NS}").alias("bin"))
    times = F.min("at_ns").alias("at_ns"), F.max("at_ns").alias("until_ns")
    return in_bins.agg(*times).drop("bin")


def blamed(
    findings: "DataFrame",
    heard: "DataFrame",
    timed: "DataFrame",
    need: list[tuple[str, str, str]],
    end_ns: int,
    gap_ms: int = GAP_MS,
) -> "DataFrame":
    """Blame losses on a bridge that was silent at the time, and without which they cannot have arrived.

    `heard` is from `entered`; `timed` are all rows; `need` is from `needed`. A bridge that passes nothing
    because there was nothing to pass is silent too: so at least `MISSED_LEAST` frames must have been lost in
    one silence. Its gateway is the one that passed something last.
    """
    spark = findings.sparkSession
    table = local_table(spark, {"first": str, "segment": str, "needed": str}, need)
    keys = ["key", "episode", "segment"]
    lost = findings.where(F.col("kind") == LOST).join(F.broadcast(table), ["first", "segment"])
    told = lost.join(heard, ["key", "episode"]).select(
        F.col("needed").alias("hub"), F.lit(None).cast("string").alias("gateway"), "at_ns", *keys
    )
    nothing = [F.lit(None).cast("bigint").alias(name) for name in ("key", "episode")]
    nowhere = F.lit(None).cast("string").alias("segment")
    hubs = local_table(spark, {"hub": str}, [(hub,) for hub in sorted({hub for _, _, hub in need})])
    acts = activity(timed).join(F.broadcast(hubs), "hub")
    line = acts.select("hub", "gateway", "at_ns", *nothing, nowhere, "until_ns").unionByName(
        told.withColumn("until_ns", F.lit(None).cast("bigint"))
    )
    silences = _silences(line, end_ns, gap_ms)
    guilty = silences.groupBy(*keys).agg(
        F.min_by("hub", "from_ns").alias("its_hub"), F.min_by("gateway", "from_ns").alias("its_gateway")
    )
    joined = findings.join(guilty, keys, "left")
    is_blamed = F.col("its_hub").isNotNull() & (F.col("kind") == LOST)
    return joined.withColumns({
        "stage": F.when(is_blamed, F.lit(NO_BRIDGE)).otherwise(F.col("stage")),
        "gateway": F.when(is_blamed, F.col("its_gateway")).otherwise(F.col("gateway")),
        "hub": F.when(is_blamed, F.col("its_hub")).otherwise(F.col("hub")),
    }).drop("its_hub", "its_gateway")  # fmt: skip


def _silences(line: "DataFrame", end_ns: int, gap_ms: int) -> "DataFrame":
    """Select the losses in a silence of their bridge, with its start and the `gateway` before it."""
    in_time = Window.partitionBy("hub").orderBy("at_ns")
    acts = F.col("until_ns").isNotNull()
    act = F.when(acts, F.struct("until_ns", "gateway"))
    begin = F.when(acts, F.col("at_ns"))
    placed = line.withColumns({
        "before": F.last(act, ignorenulls=True).over(in_time.rowsBetween(Window.unboundedPreceding, 0)),
        "after_ns": F.first(begin, ignorenulls=True).over(in_time.rowsBetween(0, Window.unboundedFollowing)),
    })  # fmt: skip
    found = placed.where(~acts).select(
        "key", "episode", "segment", "hub", "at_ns",
        F.col("before.gateway").alias("gateway"),
        F.coalesce("before.until_ns", F.lit(0)).alias("from_ns"),
        F.coalesce("after_ns", F.lit(end_ns)).alias("to_ns"),
    )  # fmt: skip
    paused = found.where(is_pause(F.col("to_ns") - F.col("from_ns"), gap_ms))
    one = Window.partitionBy("hub", "from_ns")
    return paused.withColumn("frames", F.size(F.collect_set("at_ns").over(one))).where(
        f"frames >= {MISSED_LEAST}"
    )
