"""Gaps: times in which nobody put anything onto a segment although frames came on others.

Two narrow passes: the pauses of each segment, a few, are collected; then frames that came meanwhile are
counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
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


class Traffic:
    """The traffic of a segment: frames that bridges `put` there, the time of the last one, and frames that
    the busiest hub heard."""

    def __init__(self) -> None:
        self.put = self.brought = self.last_ns = 0


def traffic(taken: "Iterable[Row]") -> dict[str, Traffic]:
    """Sum up the traffic of each segment, from the rows of `pipeline.analysis.inventory.take`."""
    found: dict[str, Traffic] = defaultdict(Traffic)
    brought: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in taken:
        if row.kind != Kind.FRAME:
            continue
        at = found[row.bus]
        if row.dir == Direction.RX:
            brought[row.gateway, row.hub, row.bus] += row.rows
            at.brought = max(at.brought, brought[row.gateway, row.hub, row.bus])
        elif row.hub.startswith(BRIDGE):
            at.put += row.rows
            at.last_ns = max(at.last_ns, row.last_ns)
    return dict(found)


def pauses(rows: "DataFrame", segments: Iterable[str], gap_ms: int = GAP_MS) -> "DataFrame":
    """Find the pauses of these `segments` that are longer than `gap_ms` and ended."""
    put = frames(rows).where(on_bridge() & sent() & F.col("bus").isin(sorted(segments)))
    each = put.groupBy("bus", bins(BIN_NS).alias("bin")).agg(
        F.min("ts_ns").alias("end_ns"), F.max("ts_ns").alias("last_ns")
    )
    in_time = Window.partitionBy("bus").orderBy("bin")
    before = each.select("bus", F.lag("last_ns").over(in_time).alias("start_ns"), "end_ns")
    return before.where(is_pause(F.col("end_ns") - F.col("start_ns"), gap_ms))


def meanwhile(rows: "DataFrame", found: list[Pause]) -> "DataFrame":
    """Count the frames that each segment (`bus`) brought in each pause (by `number`): those of the hub that
    heard most."""
    table = local_table(
        rows.sparkSession,
        {"number": int, "start_ns": int, "end_ns": int},
        [(n, one.start_ns, one.end_ns) for n, one in enumerate(found)],
    )
    time = F.col("ts_ns").between(min(p.start_ns for p in found), max(p.end_ns for p in found))
    came_then = frames(rows).where(received() & time)
    of_hub = came_then.groupBy("bus", "gateway", "hub", bins(BIN_NS).alias("bin")).count()
    came = of_hub.groupBy("bus", "bin").agg(F.max("count").alias("n"))
    inside = is_whole_bin(*map(F.col, ("bin", "start_ns", "end_ns")))
    return came.join(F.broadcast(table), inside).groupBy("number", "bus").agg(F.sum("n").alias("n"))


def gaps(rows: "DataFrame", taken: "list[Row]", gap_ms: int = GAP_MS) -> list[Pause]:
    """Find the pauses in which frames were missed; to the end of the capture if nobody came back."""
    seen = traffic(taken)
    served = {name: one for name, one in seen.items() if is_served(one.put, one.brought)}
    found = tails(taken, served, gap_ms)
    if served:
        found += [Pause(*row) for row in pauses(rows, served, gap_ms).collect()]
    if not found:
        return []
    came: dict[int, dict[str, int]] = defaultdict(dict)
    for row in meanwhile(rows, found).collect():
        came[row.number][row.bus] = row.n
    return [pause for number, pause in enumerate(found) if _are_missed(pause.segment, came[number])]


def tails(taken: "Iterable[Row]", served: Mapping[str, Traffic], gap_ms: int) -> list[Pause]:
    """Find the pauses that last to the end of the capture."""
    times = [r.last_ns for r in taken if r.kind == Kind.FRAME and r.dir == Direction.RX]
    end_ns = max(times, default=0) // BIN_NS * BIN_NS
    return [
        Pause(name, one.last_ns, end_ns)
        for name, one in served.items()
        if is_pause(end_ns - one.last_ns, gap_ms)
    ]


def _are_missed(segment: str, came: Mapping[str, int]) -> bool:
    others = max((n for name, n in came.items() if name != segment), default=0)
    return bool(are_missed(others, came.get(segment, 0)))
