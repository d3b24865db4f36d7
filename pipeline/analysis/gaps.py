"""Gaps: times in which nobody put anything onto a segment although frames came on others.

They are found in two narrow passes: the pauses of each segment, a few, are collected; then frames that came
meanwhile are counted. The rules are those of failovers (`pipeline.analysis.service`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Kind
from pipeline.analysis.frames import bins, frames, local_table, on_bridge, received, sent
from pipeline.analysis.service import BIN_NS, GAP_MS, are_missed, is_pause, is_served, is_whole_bin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


class Pause(NamedTuple):
    """A time in which nobody put anything onto `segment`: after `start_ns` and before `end_ns`."""

    segment: str
    start_ns: int
    end_ns: int


def served(found: "Iterable[Row]") -> dict[str, int]:
    """Find the segments that bridges serve, and the time of the last frame put onto each, in ns.

    `found`: the rows of frames of `pipeline.analysis.inventory.take`.
    """
    put: dict[str, list[Row]] = defaultdict(list)
    heard_by: dict[str, Counter[str]] = defaultdict(Counter)
    for row in found:
        if row.dir == Direction.RX:
            heard_by[row.bus][row.hub] += row.rows
        elif row.hub.startswith(BRIDGE):
            put[row.bus].append(row)
    brought = {name: max(counts.values()) for name, counts in heard_by.items()}
    return {
        name: max(row.last_ns for row in rows)
        for name, rows in put.items()
        if is_served(sum(row.rows for row in rows), brought.get(name, 0))
    }


def pauses(rows: "DataFrame", segments: Iterable[str], gap_ms: int = GAP_MS) -> "DataFrame":
    """Find the pauses of these `segments` that are longer than `gap_ms` and ended."""
    put = frames(rows).where(on_bridge() & sent() & F.col("bus").isin(sorted(segments)))
    each = put.groupBy("bus", bins(BIN_NS).alias("bin")).agg(
        F.min("ts_ns").alias("end_ns"), F.max("ts_ns").alias("last_ns")
    )
    in_time = Window.partitionBy("bus").orderBy("bin")
    before = each.select("bus", F.lag("last_ns").over(in_time).alias("start_ns"), "end_ns")
    return before.where(is_pause(F.col("end_ns") - F.col("start_ns"), gap_ms))


def missed(rows: "DataFrame", found: list[Pause]) -> list[Pause]:
    """Choose the pauses in which frames were missed."""
    numbered = [(number, one.start_ns, one.end_ns) for number, one in enumerate(found)]
    table = local_table(rows.sparkSession, {"number": int, "start_ns": int, "end_ns": int}, numbered)
    time = F.col("ts_ns").between(min(p.start_ns for p in found), max(p.end_ns for p in found))
    of_hub = frames(rows).where(received() & time).groupBy("bus", "hub", bins(BIN_NS).alias("bin"))
    came = of_hub.count().groupBy("bus", "bin").agg(F.max("count").alias("n"))
    inside = is_whole_bin(*map(F.col, ("bin", "start_ns", "end_ns")))
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for row in came.join(F.broadcast(table), inside).groupBy("number", "bus").agg(F.sum("n")).collect():
        counts[row[0]][row[1]] = row[2]
    return [one for number, one in enumerate(found) if _is_missed(one.segment, counts[number])]


def _is_missed(segment: str, came: Counter[str]) -> bool:
    others = max((n for name, n in came.items() if name != segment), default=0)
    return bool(are_missed(others, came[segment]))


def gaps(rows: "DataFrame", taken: "list[Row]", gap_ms: int = GAP_MS) -> list[Pause]:
    """Find the pauses in which frames were missed; to the end of the capture if nobody came back."""
    seen = [row for row in taken if row.kind == Kind.FRAME]
    last_ns = served(seen)
    if not last_ns:
        return []
    end_ns = max((row.last_ns for row in seen if row.dir == Direction.RX), default=0) // BIN_NS * BIN_NS
    found = [Pause(*row) for row in pauses(rows, last_ns, gap_ms).collect()]
    found += [Pause(name, ns, end_ns) for name, ns in last_ns.items() if is_pause(end_ns - ns, gap_ms)]
    return missed(rows, found) if found else []
