"""Gaps: times in which nobody put anything onto a segment although frames for it were lost.

They matter where bridges stand beside each other, so that no single one can be blamed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Kind
from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.quiet import lost_in, spells
from pipeline.analysis.shared.frames import frames, on_bridge, sent
from pipeline.analysis.shared.service import GAP_MS, is_pause, is_served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def served(taken: "Iterable[Row]") -> set[str]:
    """Find the segments that bridges serve, from the rows of `pipeline.analysis.shared.inventory.take`."""
    put = Counter[str]()
    heard_by: dict[str, Counter[str]] = defaultdict(Counter)
    for row in (row for row in taken if row.kind == Kind.FRAME):
        if row.dir == Direction.RX:
            heard_by[row.bus][row.hub] += row.rows
        elif row.hub.startswith(BRIDGE):
            put[row.bus] += row.rows
    return {name for name, count in put.items() if is_served(count, max(heard_by[name].values(), default=0))}


def pauses(
    rows: "DataFrame", segments: Collection[str], ahead: Mapping[str, int], end_ns: int
) -> "DataFrame":
    """Find the pauses of `segments` (`quiet.spells`); to the end if nobody came back."""
    put = frames(rows).where(on_bridge() & sent() & F.col("bus").isin(sorted(segments)))
    return spells(put, F.col("bus"), ahead, end_ns).where(is_pause(F.col("to_ns") - F.col("from_ns"), GAP_MS))


def paused(lost: "DataFrame", found: "DataFrame") -> "DataFrame":
    """Find the segments (`paused`) that had a pause when frames for them were `lost`, by `key` and
    `episode`."""
    hit = lost_in(found, lost).groupBy(*EPISODE)
    return hit.agg(F.sort_array(F.collect_set("name")).alias("paused"))
