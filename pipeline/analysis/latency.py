"""Latency: the time of frames inside each bridge, on each wire, and end to end, with the gateways' clocks
corrected.

Only frames without a fault are timed (`pipeline.analysis.expected`), so that rows of one are not another's.
Times are kept as KLL sketches, one a minute and hop: they merge, so a month is summed up from its minutes.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis import inventory, sums
from pipeline.analysis.clocks import faultless, least, offsets
from pipeline.analysis.expected import learn
from pipeline.analysis.frames import local_table
from pipeline.analysis.hops import HOP, bridge_hops, whole_ways, wire_hops
from pipeline.cache import cached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.analysis.inventory import Places

SKETCH_K: Final = 800  # within half a percent of the rank; 13 kB each
_MINUTE_NS: Final = 60_000_000_000


class Latency(NamedTuple):
    """The tables: how far each gateway's clock is ahead (`clocks`), sketches by minute (`hops`), percentiles
    in us (`summary`)."""

    clocks: "DataFrame"
    hops: "DataFrame"
    summary: "DataFrame"


def timed(rows: "DataFrame", sample: int = 1) -> "tuple[DataFrame, Places]":
    """Select the rows of faultless frames, of one key in `sample`: `key`, gateway, hub, bus, `segment`, dir,
    ts_ns."""
    at = inventory.places(rows)
    of_frames = sums.keyed(rows, at)
    if sample > 1:
        of_frames = of_frames.where(F.pmod(F.xxhash64("key"), F.lit(sample)) == 0)
    frame_sums = sums.sums(of_frames, at)
    expected = learn(sums.signatures(frame_sums, at).collect(), at.words)
    return faultless(of_frames, frame_sums, expected, at), at


def corrected(hops: "DataFrame", clocks: "DataFrame") -> "DataFrame":
    """Add the `delay_ns` of each hop by one clock. Hops between clocks that cannot be compared are left
    out."""
    for side in ("from", "to"):
        clock = clocks.withColumnsRenamed({"gateway": f"{side}_gateway", "ahead_ns": f"{side}_ahead"})
        hops = hops.join(F.broadcast(clock), f"{side}_gateway")
    same = F.col("from_gateway") == F.col("to_gateway")
    ahead = F.when(same, F.lit(0)).otherwise(F.col("to_ahead") - F.col("from_ahead"))
    delay_ns = F.col("to_ns") - F.col("from_ns") - ahead
    return hops.withColumn("delay_ns", delay_ns).where("delay_ns is not null")


def sketches(delays: "DataFrame") -> "DataFrame":
    """Sketch the delays of each minute and hop: n, least and most, and the KLL sketch."""
    return (
        delays.withColumn("start_ns", F.expr(f"from_ns div {_MINUTE_NS} * {_MINUTE_NS}"))
        .groupBy("start_ns", "kind", *HOP)
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.min("delay_ns").alias("least_ns"), F.max("delay_ns").alias("most_ns"),
            F.kll_sketch_agg_bigint("delay_ns", SKETCH_K).alias("sketch"),
        )
    )  # fmt: skip


def percentiles(hops: "DataFrame") -> "DataFrame":
    """Merge the sketches of each hop, in microseconds."""
    merged = hops.groupBy("kind", *HOP).agg(
        F.sum("n").alias("n"), F.min("least_ns").alias("least"), F.max("most_ns").alias("most"),
        F.kll_merge_agg_bigint("sketch").alias("sketch"),
    )  # fmt: skip
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    marks = {name: F.kll_sketch_get_quantile_bigint("sketch", F.lit(rank)) for name, rank in ranks.items()}
    times_ns = {"least": F.col("least"), **marks, "most": F.col("most")}
    times_us = [(column / 1000).alias(name) for name, column in times_ns.items()]
    return merged.select("kind", *HOP, "n", *times_us).orderBy("kind", *HOP)


def latency(rows: "DataFrame", sample: int = 1) -> Latency:
    """Measure a capture. The frames' signatures and the pairs of gateways are collected on the way."""
    good, at = timed(rows, sample)
    good = cached(good)
    wires = wire_hops(good)
    gateways = sorted({gateway for gateway, _ in at.hubs})
    ahead = offsets(least(wires).collect(), gateways)
    clocks = local_table(rows.sparkSession, {"gateway": str, "ahead_ns": int}, list(ahead.items()))
    every = bridge_hops(good).unionByName(wires).unionByName(whole_ways(good))
    hops = cached(sketches(corrected(every, clocks)))
    return Latency(clocks, hops, percentiles(hops))
