"""Stand-ins: candidates for one bridge, which may give one frame an envelope each.

In the first seconds of a candidate, it cannot stamp as the others do (docs/failover.md). One that takes over
then sends again what it did not hear from the one before. If that had forwarded some of it, as behind a trunk
that was cut, such a frame has two envelopes: one that a bridge received, and one that a bridge of the same
name on another gateway put although no bridge received it, or only one that stood by (`replays`). Both are
one frame here, of which a bus may have heard two copies.

Equal frames cannot be told apart. Those that are sent again are matched with equal ones of which something is
missing, in order. One that is not missing is matched only if no other frame was equal.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import BRIDGE
from pipeline.analysis.audit import replays
from pipeline.analysis.shared import sums
from pipeline.analysis.shared.chosen import first_of
from pipeline.analysis.shared.expected import Expected
from pipeline.analysis.shared.frames import content, on_bridge, received
from pipeline.analysis.shared.places import Places
from pipeline.cache import cached

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW_NS: Final = 20_000_000_000
"""A candidate sends again what it heard so long before at most, and knows the stamps of others by then."""
_EQUAL: Final = ("content", "hub")


def may_be(expected: Expected, at: Places, has_entries: bool) -> bool:
    """Return whether frames may have been sent again. `has_entries`: recorders wrote what came in while a
    bridge stood by."""
    return bool(expected.homeless or has_entries) and _are_there(at)


def pairs(
    of_frames: "DataFrame", frame_sums: "DataFrame", expected: Expected, at: Places, has_entries: bool
) -> "DataFrame":
    """Find the keys under which frames were sent again: `key`, and `one_key`, under which each was before.

    `was_whole` tells whether nothing was wrong with it as it was before, and `inside` whether that is to be
    counted. `of_frames` and `frame_sums` as in `suspects.picked`, `has_entries` as in `may_be`.
    """
    on_bridges = of_frames.where(on_bridge()).withColumn("content", content())
    keys = sums.alike(frame_sums, expected.homeless, at).select("key")
    if has_entries:
        keys = keys.union(on_bridges.where(replays.stood_by()).select("key")).distinct()
    again = cached(_again(on_bridges.join(F.broadcast(keys), "key")))
    whole = sums.alike(frame_sums, expected.typical, at)
    before = _before(on_bridges, again).join(whole.select("key", "home", "inside"), "key", "left")
    return cached(_matched(again, before))


def _are_there(at: Places) -> bool:
    """Return whether a bridge has candidates, and envelopes tell frames apart."""
    gateways = defaultdict[str, set[str]](set)
    for gateway, hub in at.hubs:
        gateways[hub].add(gateway)
    bridges = (its for hub, its in gateways.items() if hub.startswith(BRIDGE))
    return at.by_envelope and any(len(its) > 1 for its in bridges)


def _again(rows: "DataFrame") -> "DataFrame":
    """Select the frames that a bridge put and had not received: `key`, `_EQUAL`, by whom, and when."""
    times = F.max("gateway").alias("by"), F.min("ts_ns").alias("sent_ns"), F.max(_entered()).alias("entered")
    return rows.groupBy("key", *_EQUAL).agg(*times).where("NOT entered").drop("entered")


def _entered() -> "Column":
    return received() & ~replays.stood_by()


def _before(rows: "DataFrame", again: "DataFrame") -> "DataFrame":
    """Select the frames equal to these that other candidates had received before: `one_key`, and when."""
    near = F.broadcast(again.select(*_EQUAL, "by", "sent_ns"))
    is_near = F.expr(f"gateway <> by AND ts_ns BETWEEN sent_ns - {WINDOW_NS} AND sent_ns")
    found = rows.where(_entered()).join(near, list(_EQUAL)).where(is_near)
    return found.groupBy("key", *_EQUAL).agg(F.min("ts_ns").alias("heard_ns"))


def _matched(again: "DataFrame", before: "DataFrame") -> "DataFrame":
    equal = Window.partitionBy(*_EQUAL)
    alone = before.withColumn("count", F.count(F.lit(1)).over(equal)).where("home IS NULL OR count = 1")
    in_order = F.row_number().over(equal.orderBy("heard_ns", "key"))
    firsts = alone.withColumn("rank", in_order).select(
        *_EQUAL, "rank", F.col("key").alias("one_key"), F.col("home").isNotNull().alias("was_whole"), "inside"
    )
    of_one = Window.partitionBy(*_EQUAL, "by").orderBy("sent_ns", "key")
    ranked = again.withColumn("rank", F.row_number().over(of_one)).join(firsts, [*_EQUAL, "rank"])
    its = ("one_key", "was_whole", "inside")
    return first_of(ranked, ["key"], *its).select("key", *its)


def as_one(rows: "DataFrame", found: "DataFrame") -> "DataFrame":
    """Give rows of frames that were sent again the `key` of before. Both are suspects, without `home`."""
    renamed = found.select("key", "one_key")
    whole = found.select(F.col("one_key").alias("key"), F.lit(True).alias("is_one")).distinct()
    joined = rows.join(F.broadcast(renamed), "key", "left").join(F.broadcast(whole), "key", "left")
    home = F.when(F.col("is_one").isNull(), F.col("home"))
    return joined.withColumns({"key": F.coalesce("one_key", "key"), "home": home}).drop("one_key", "is_one")
