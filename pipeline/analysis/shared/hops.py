"""Hops: the times of frames without a fault inside each bridge, on each wire, and end to end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.shared.frames import on_bridge, received, sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BRIDGE: Final = "bridge"  # received and put by the same bridge
WIRE: Final = "wire"  # put by one bridge and received by another
WHOLE: Final = "end to end"  # entered its segment, and put onto another
HOP: Final = ("from_gateway", "from", "to_gateway", "to")


def _end(rows: "DataFrame", name: str, keys: Sequence[str]) -> "DataFrame":
    """Name the columns of one end of hops, "from" or "to": gateway, segment and time, beside the keys of a
    join."""
    columns = {"gateway": f"{name}_gateway", "bus": name, "ts_ns": f"{name}_ns"}
    return rows.select(*keys, *(F.col(column).alias(new) for column, new in columns.items()))


def _hops(kind: str, begin: "DataFrame", end: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    joined = _end(begin, "from", keys).join(_end(end, "to", keys), list(keys))
    return joined.select(F.lit(kind).alias("kind"), *HOP, "from_ns", "to_ns")


def bridge_hops(good: "DataFrame") -> "DataFrame":
    """Time bridges from receiving to putting, by one clock."""
    of_bridges = good.where(on_bridge())
    keys = ("key", "gateway", "hub")
    hops = _hops(BRIDGE, of_bridges.where(received()), of_bridges.where(sent()), keys)
    return hops.where(F.col("from") != F.col("to"))


def wire_hops(good: "DataFrame") -> "DataFrame":
    """Time wires from one bridge's putting to another's receiving, by two clocks."""
    of_bridges = good.where(on_bridge())
    hops = _hops(WIRE, of_bridges.where(sent()), of_bridges.where(received()), ("key", "segment"))
    return hops.where(F.col("from_gateway") != F.col("to_gateway"))


def whole_ways(good: "DataFrame") -> "DataFrame":
    """Time frames from the first hub that received them at home to each bridge that put them onto another
    segment."""
    home = F.col("segment") == F.col("home")
    heard = good.where(received() & home)
    entered = heard.groupBy("key", "gateway", "bus").agg(F.min("ts_ns").alias("ts_ns"))
    return _hops(WHOLE, entered, good.where(on_bridge() & sent() & ~home), ("key",))
