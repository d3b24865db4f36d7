"""Rates: frames and bytes by segment, pattern prefix and window of time; top talkers; how full the media
are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.shared.frames import bins, frames, local_table, on_bridge, received, sent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def prefix(depth: int) -> "list[Column]":
    """Take the first tokens as columns token1, token2 ...; null if a frame has fewer."""
    return [F.try_element_at("tokens", F.lit(n)).alias(f"token{n}") for n in range(1, depth + 1)]


def seen(rows: "DataFrame", seconds: float, depth: int) -> "DataFrame":
    """Count the frames that each hub received from and put onto each segment, by window `w` and prefix.
    Batches add up."""
    place = ("bus", "gateway", "hub", "dir")
    window = bins(_width_ns(seconds)).alias("w")
    each = frames(rows).select(*place, "message_bytes", *prefix(depth), window)
    return each.groupBy("w", *place, *_tokens(depth)).agg(
        F.count(F.lit(1)).alias("n"), F.sum("message_bytes").alias("bytes")
    )


def _width_ns(seconds: float) -> int:
    return max(1, round(seconds * 1e9))


def _tokens(depth: int) -> list[str]:
    return [f"token{n}" for n in range(1, depth + 1)]


def best(parts: "DataFrame", seconds: float, depth: int) -> "DataFrame":
    """Count, by window, segment and prefix, frames and bytes that the segment `brought` and that were `put`
    onto it.

    Several hubs may hear the same frames of a segment: the one that heard most counts. Candidates of one
    bridge, which have its name, hear one after the other and add up, as do frames that bridges put.
    """
    keys = ["w", "bus", *_tokens(depth)]
    of_hub = parts.groupBy(*keys, "hub", "dir").agg(F.sum("n").alias("n"), F.sum("bytes").alias("bytes"))
    put = sent() & on_bridge()
    counted = of_hub.groupBy(*keys).agg(
        F.max(F.when(received(), F.col("n")).otherwise(0)).alias("brought"),
        F.max(F.when(received(), F.col("bytes")).otherwise(0)).alias("brought_bytes"),
        F.sum(F.when(put, F.col("n")).otherwise(0)).alias("put"),
        F.sum(F.when(put, F.col("bytes")).otherwise(0)).alias("put_bytes"),
    )
    start = (F.col("w") * _width_ns(seconds)).alias("start_ns")
    return counted.select(start, "bus", *_tokens(depth), *_MEASURES)


_MEASURES: Final = ("brought", "brought_bytes", "put", "put_bytes")


def rates(rows: "DataFrame", seconds: float = 10.0, depth: int = 1) -> "DataFrame":
    """Count the frames and bytes of a capture by window, segment and prefix, as `best` does."""
    return best(seen(rows, seconds, depth), seconds, depth)


def by_prefix(windows: "DataFrame", depth: int = 1) -> "DataFrame":
    """Add up the windows: the whole capture by segment and prefix, busiest first."""
    total = windows.groupBy("bus", *_tokens(depth)).agg(*(F.sum(name).alias(name) for name in _MEASURES))
    return total.orderBy(F.desc(F.col("brought") + F.col("put")), "bus", *_tokens(depth))


def newest_first(windows: "DataFrame", depth: int = 1) -> "DataFrame":
    """Put windows in order: the last one first, by segment and prefix."""
    return windows.orderBy(F.desc("start_ns"), "bus", *_tokens(depth))


def talkers(rows: "DataFrame", count: int = 10) -> "DataFrame":
    """Find the peers that brought most, by gateway and segment."""
    who = ("gateway", "hub", "bus", "peer")
    sums = F.count(F.lit(1)).alias("frames"), F.sum("message_bytes").alias("bytes")
    found = frames(rows).where(received()).groupBy(*who).agg(*sums)
    return found.orderBy(F.desc("frames"), *who).limit(count)


def media(
    windows: "DataFrame", seconds: float = 10.0, capacity: Mapping[str, float] | None = None
) -> "DataFrame":
    """Compute the load of each segment: bytes a second on average and in the fullest window, and `used` of
    its capacity.

    For each prefix the greater of the bytes brought and put is taken: on a wire they are the same frames, and
    elsewhere frames of a pattern go one way as a rule.
    """
    table = local_table(windows.sparkSession, {"bus": str, "capacity": float}, list((capacity or {}).items()))
    one = windows.groupBy("bus", "start_ns").agg(
        F.sum(F.greatest("brought_bytes", "put_bytes")).alias("bytes")
    )
    span = (F.max("start_ns") - F.min("start_ns")) / 1e9 + seconds
    of_bus = one.groupBy("bus").agg(
        (F.sum("bytes") / span).alias("bytes_per_s"), (F.max("bytes") / seconds).alias("peak_bytes_per_s")
    )
    joined = of_bus.join(F.broadcast(table), "bus", "left")
    used = F.col("peak_bytes_per_s") / F.col("capacity")
    return joined.withColumn("used", used).drop("capacity").orderBy("bus")
