"""How much travels: by segment, pattern prefix and window of time; who talks most; how full the media are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.frames import frames, local_table, received, sent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def prefix(depth: int) -> "list[Column]":
    """The first tokens as columns token1, token2 ...; null where a frame has fewer."""
    return [F.try_element_at("tokens", F.lit(n)).alias(f"token{n}") for n in range(1, depth + 1)]


def rates(rows: "DataFrame", seconds: float = 10.0, depth: int = 1) -> "DataFrame":
    """For each window, segment and prefix: frames and bytes that the segment `brought` and that were `put` onto it.

    Several hubs may see the same segment: the one who saw most in a window counts.
    """
    width = max(1, int(seconds * 1e9))
    tokens = [f"token{n}" for n in range(1, depth + 1)]
    seen = (
        frames(rows)
        .select(
            "bus",
            "gateway",
            "hub",
            "dir",
            "message_bytes",
            *prefix(depth),
            F.expr(f"ts_ns div {width}").alias("w"),
        )
        .groupBy("w", "bus", "gateway", "hub", "dir", *tokens)
        .agg(F.count(F.lit(1)).alias("n"), F.sum("message_bytes").alias("bytes"))
    )
    best = seen.groupBy("w", "bus", *tokens).agg(
        *(F.max(F.when(way, F.col(what)).otherwise(0)).alias(name) for way, what, name in _measures())
    )
    return best.select((F.col("w") * width).alias("start_ns"), "bus", *tokens, *(m[2] for m in _measures()))


def _measures() -> "list[tuple[Column, str, str]]":
    return [
        (received(), "n", "brought"), (received(), "bytes", "brought_bytes"),
        (sent(), "n", "put"), (sent(), "bytes", "put_bytes"),
    ]  # fmt: skip


def by_prefix(windows: "DataFrame", depth: int = 1) -> "DataFrame":
    """The windows added up: the whole capture by segment and prefix, busiest first."""
    tokens = [f"token{n}" for n in range(1, depth + 1)]
    names = [m[2] for m in _measures()]
    total = windows.groupBy("bus", *tokens).agg(*(F.sum(name).alias(name) for name in names))
    return total.orderBy(F.desc("brought"), "bus", *tokens)


def talkers(rows: "DataFrame", count: int = 10) -> "DataFrame":
    """The peers that brought most, by gateway and segment."""
    return (
        frames(rows)
        .where(received())
        .groupBy("gateway", "hub", "bus", "peer")
        .agg(F.count(F.lit(1)).alias("frames"), F.sum("message_bytes").alias("bytes"))
        .orderBy(F.desc("frames"), "gateway", "hub", "bus", "peer")
        .limit(count)
    )


def media(
    windows: "DataFrame", seconds: float = 10.0, capacity: Mapping[str, float] | None = None
) -> "DataFrame":
    """How full each segment is: bytes a second on average and in the fullest window, and `used` of its capacity."""
    table = local_table(windows.sparkSession, {"bus": str, "capacity": float}, list((capacity or {}).items()))
    one = windows.groupBy("bus", "start_ns").agg(
        F.sum(F.col("brought_bytes") + F.col("put_bytes")).alias("bytes")
    )
    span = (F.max("start_ns") - F.min("start_ns")) / 1e9 + seconds
    of_bus = one.groupBy("bus").agg(
        (F.sum("bytes") / span).alias("bytes_per_s"), (F.max("bytes") / seconds).alias("peak_bytes_per_s")
    )
    joined = of_bus.join(F.broadcast(table), "bus", "left")
    return (
        joined.withColumn("used", F.col("peak_bytes_per_s") / F.col("capacity"))
        .drop("capacity")
        .orderBy("bus")
    )
