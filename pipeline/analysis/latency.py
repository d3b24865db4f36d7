"""Latency: the time of frames inside each bridge, on each wire, and end to end, with the gateways' clocks
corrected, and their drift.

Only frames without a fault are timed (`pipeline.analysis.shared.expected`), so that rows of one are not
another's. Times are counted by their rounded values, by minute and hop. Such sketches are tables that add up,
so a month is summed up from its minutes, on any engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.shared import drifts, inventory, restarts, steps, sums, trunks, wire_drifts
from pipeline.analysis.shared.clocks import Clock, faultless, offsets
from pipeline.analysis.shared.drifts import Drift
from pipeline.analysis.shared.expected import learn
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.hops import HOP, bridge_hops, whole_ways, wire_hops
from pipeline.analysis.shared.inventory import Run
from pipeline.cache import cached

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from pipeline.analysis.shared.places import Places

_DIGITS: Final = 3
_DIGITS_MOST: Final = 15  # of 60 bits: 36 years
_MINUTE_NS: Final = 60_000_000_000


class Latency(NamedTuple):
    """The tables: how far each gateway's clock is ahead at first, `against` which, and by how much it drifted
    since (`clocks`); sketches by minute (`hops`); percentiles in us (`summary`)."""

    clocks: "DataFrame"
    hops: "DataFrame"
    summary: "DataFrame"


def timed(
    rows: "DataFrame", sample: int = 1, entries: "list[Row] | None" = None
) -> "tuple[DataFrame, Places]":
    """Select the rows of faultless frames, of one key in `sample`: `key`, gateway, hub, bus, `segment`, dir,
    ts_ns; as if no clock had stepped, nor been another after a restart."""
    entries = inventory.take(rows) if entries is None else entries
    rows, _, at = trunks.whole(rows, entries)
    of_frames = sums.keyed(rows, at)
    if sample > 1:
        of_frames = of_frames.where(F.pmod(F.xxhash64("key"), F.lit(sample)) == 0)
    frame_sums = sums.sums(of_frames, at)
    expected = learn(sums.signatures(frame_sums, at).collect(), at.words, at.heard_in)
    good = cached(faultless(of_frames, frame_sums, expected, at))
    return _at_one_clock(good, rows, inventory.runs(entries)), at


def _at_one_clock(good: "DataFrame", rows: "DataFrame", runs: Sequence[Run]) -> "DataFrame":
    """Give rows of each gateway the times of the clock that it had for longest."""
    if len({run.gateway for run in runs}) < 2:
        return good
    parts = restarts.parts_of(runs, steps.steps(rows, runs).found)
    if not restarts.are_several(parts):
        return good
    pairs = restarts.planned_pairs(good, parts)
    found = restarts.apart(pairs, parts, restarts.SAME_NS, by_one_way=False)
    return restarts.corrected(good, found, parts) if found else good


def corrected(hops: "DataFrame", clocks: "DataFrame") -> "DataFrame":
    """Add the `delay_ns` of each hop by one clock. Hops between clocks that cannot be compared are left
    out."""
    for side in ("from", "to"):
        names = {"gateway": f"{side}_gateway", "ahead_ns": f"{side}_ahead", "against": f"{side}_against"}
        clock = clocks.withColumnsRenamed(names)
        hops = hops.join(F.broadcast(clock), f"{side}_gateway")
    delay_ns = F.col("to_ns") - F.col("from_ns") - (F.col("to_ahead") - F.col("from_ahead"))
    return hops.where("from_against = to_against").withColumn("delay_ns", delay_ns)


def mark(delay_ns: "Column") -> "Column":
    """Round a delay to three hexadecimal digits, and take the middle of what is rounded alike: within 0.2 %.

    All is done with integers, so that engines agree to the last bit.
    """
    size = F.abs(delay_ns)
    step = F.lit(1).cast("bigint")
    for digits in range(_DIGITS, _DIGITS_MOST):
        step = F.when(size >= 16**digits, F.lit(16 ** (digits - _DIGITS + 1))).otherwise(step)
    middle = size - size % step + F.floor(step / 2).cast("bigint")
    return F.when(delay_ns < 0, -middle).otherwise(middle)


def sketches(delays: "DataFrame") -> "DataFrame":
    """Count the delays of each minute and hop by their `mark_ns`, with the least and most of them."""
    marked = delays.withColumns(
        {"start_ns": F.expr(f"from_ns div {_MINUTE_NS} * {_MINUTE_NS}"), "mark_ns": mark(F.col("delay_ns"))}
    )
    return marked.groupBy("start_ns", "kind", *HOP, "mark_ns").agg(
        F.count(F.lit(1)).alias("n"), F.min("delay_ns").alias("least_ns"), F.max("delay_ns").alias("most_ns")
    )


def percentiles(hops: "DataFrame") -> "DataFrame":
    """Sum up the sketches of each hop, in microseconds."""
    merged = hops.groupBy("kind", *HOP, "mark_ns").agg(
        F.sum("n").alias("n"), F.min("least_ns").alias("least"), F.max("most_ns").alias("most")
    )
    hop = Window.partitionBy("kind", *HOP)
    so_far = hop.orderBy("mark_ns").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = merged.withColumns({"so_far": F.sum("n").over(so_far), "all": F.sum("n").over(hop)})
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    marks = [
        F.min(F.when(F.col("so_far") >= F.col("all") * rank, F.col("mark_ns"))).alias(name)
        for name, rank in ranks.items()
    ]
    summed = ranked.groupBy("kind", *HOP).agg(
        F.sum("n").alias("n"), F.min("least").alias("least"), *marks, F.max("most").alias("most")
    )
    inside = {name: F.least(F.greatest(name, "least"), "most") for name in ranks}
    times_ns = {"least": F.col("least"), **inside, "most": F.col("most")}
    times_us = [(column / 1000).alias(name) for name, column in times_ns.items()]
    return summed.select("kind", *HOP, "n", *times_us).orderBy("kind", *HOP)


def latency(rows: "DataFrame", sample: int = 1, entries: "list[Row] | None" = None) -> Latency:
    """Measure a capture. `entries` are its inventory, which is taken if it is not given. The frames'
    signatures and the pairs of gateways are collected on the way."""
    entries = inventory.take(rows) if entries is None else entries
    good, at = timed(rows, sample, entries)
    gateways = sorted({gateway for gateway, _ in at.hubs})
    width_ns = wire_drifts.width_ns(entries)
    found = wire_drifts.least(wire_hops(good), width_ns).collect()
    drifted = wire_drifts.drifts(found, gateways)
    if drifted:
        good = drifts.corrected(good, drifted)
        found = wire_drifts.least(wire_hops(good), width_ns).collect()
    clocks = _clocks(rows.sparkSession, offsets(wire_drifts.pairs(found), gateways), drifted)
    every = bridge_hops(good).unionByName(wire_hops(good)).unionByName(whole_ways(good))
    hops = cached(sketches(corrected(every, clocks)))
    return Latency(clocks, hops, percentiles(hops))


def _clocks(spark: "SparkSession", compared: Mapping[str, Clock], drifted: Iterable[Drift]) -> "DataFrame":
    by_ns = {one.gateway: one.by_ns for one in drifted}
    names = {"gateway": str, "ahead_ns": int, "against": str, "drift_ns": int}
    rows = [(name, one.ahead_ns, one.against, by_ns.get(name, 0)) for name, one in sorted(compared.items())]
    return local_table(spark, names, rows)
