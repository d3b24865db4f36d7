"""Quiet spells: times in which a bridge passed nothing, or nobody put anything onto a segment, and the frames
that were lost in them.

A time in which there was nothing to pass is quiet too. So a spell counts if several frames were lost in it
that needed what was quiet.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.shared import frames
from pipeline.analysis.shared.clocks import at_one_clock
from pipeline.analysis.shared.service import GAP_MS, MISSED_LEAST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SLACK_NS: Final = 10_000_000
"""A frame that entered so shortly before a spell was still on its way when that began."""


def spells(
    rows: "DataFrame",
    name: "Column",
    ahead: "Mapping[str, int]",
    end_ns: int,
    width_ns: int = GAP_MS * 1_000_000,
) -> "DataFrame":
    """Find the times between rows of one `name`: `name`, `from_ns`, `to_ns`, and `last`.

    `last` is the gateway of the row before. The spell after the last row lasts until `end_ns`. Times are
    those of one clock, and spells shorter than a bin of `width_ns` are not all found.
    """
    times = F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns")
    bins = rows.groupBy(name.alias("name"), "gateway", frames.bins(width_ns).alias("bin")).agg(*times)
    timed = at_one_clock(bins, ahead, {"first_at": "first_ns", "last_at": "last_ns"})
    in_time = Window.partitionBy("name").orderBy("first_at")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.max(F.struct("last_at", "gateway")).over(so_far)
    after = F.coalesce(F.lead("first_at").over(in_time), F.lit(end_ns))
    found = timed.select("name", last.alias("its"), after.alias("to_ns"))
    return found.select(
        "name", F.col("its.last_at").alias("from_ns"), "to_ns", F.col("its.gateway").alias("last")
    )


def lost_in(found: "DataFrame", lost: "DataFrame") -> "DataFrame":
    """Select the episodes that were lost in a spell with enough others: `key`, `episode`, `name`, `from_ns`,
    `last`.

    `lost` has for each frame the `name` of what it needed, and the time `from_at` to `to_at` in which it did.
    Spells of one name do not overlap: so the last one that began before a frame's time ended is its own, or
    none is. It is found by one sort of both.
    """
    spell = F.struct("from_ns", "to_ns", "last").alias("spell")
    begun = found.select("name", (F.col("from_ns") - SLACK_NS).alias("at"), spell)
    asked = lost.select("name", F.col("to_at").alias("at"), *EPISODE, "from_at")
    both = begun.unionByName(asked, allowMissingColumns=True)
    by_time = Window.partitionBy("name").orderBy("at", F.col("from_at").asc_nulls_first())
    in_order = both.withColumn("spell", F.last("spell", ignorenulls=True).over(by_time))
    hit = in_order.where(F.expr(f"key IS NOT NULL AND spell.to_ns + {SLACK_NS} >= from_at"))
    flat = hit.select(*EPISODE, "name", "spell.from_ns", "spell.last")
    many = F.count(F.lit(1)).over(Window.partitionBy("name", "from_ns")) >= MISSED_LEAST
    return flat.withColumn("many", many).where("many").drop("many")
