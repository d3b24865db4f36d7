"""Times in which nobody at all put anything onto a segment although frames came on others.

Two narrow passes: the pauses of each segment, a few, are collected; then what came meanwhile is counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Kind
from pipeline.frames import frames, local_table, on_bridge, received, sent
from pipeline.jobs.failovers import BIN_MS, ECHOES_MOST, GAP_MS, MISSED_LEAST

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_MS: Final = 1_000_000
_WIDTH_NS: Final = BIN_MS * _MS


class Pause(NamedTuple):
    """Nobody put anything onto `segment` after `start_ns` and before `end_ns`."""

    segment: str
    start_ns: int
    end_ns: int


class Traffic:
    """Of one segment: frames that bridges `put` there, the last one's time, and those that the hub that
    heard most heard."""

    def __init__(self) -> None:
        self.put = self.brought = self.last_ns = 0

    @property
    def served(self) -> bool:
        """A segment that brings frames itself, and is given a few, has echoes and no service."""
        return self.put > 0 and self.put * ECHOES_MOST >= self.brought


def traffic(surveyed: "Iterable[Row]") -> dict[str, Traffic]:
    """From the rows of `pipeline.survey.look`."""
    found: dict[str, Traffic] = defaultdict(Traffic)
    brought: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in surveyed:
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
    """Of these `segments`: where nobody put anything for `gap_ms`, and then somebody did."""
    put = frames(rows).where(on_bridge() & sent() & F.col("bus").isin(sorted(segments)))
    bins = put.groupBy("bus", _bin()).agg(F.min("ts_ns").alias("end_ns"), F.max("ts_ns").alias("last_ns"))
    in_time = Window.partitionBy("bus").orderBy("bin")
    before = bins.select("bus", F.lag("last_ns").over(in_time).alias("start_ns"), "end_ns")
    return before.where(F.col("end_ns") - F.col("start_ns") > gap_ms * _MS)


def meanwhile(rows: "DataFrame", found: list[Pause]) -> "DataFrame":
    """Frames that each segment (`bus`) brought within each pause (by its `number`): the most that one hub
    heard."""
    table = local_table(
        rows.sparkSession,
        {"number": int, "from_bin": int, "to_bin": int},
        [(n, -(-one.start_ns // _WIDTH_NS), one.end_ns // _WIDTH_NS) for n, one in enumerate(found)],
    )
    time = F.col("ts_ns").between(min(p.start_ns for p in found), max(p.end_ns for p in found))
    of_hub = frames(rows).where(received() & time).groupBy("bus", "gateway", "hub", _bin()).count()
    came = of_hub.groupBy("bus", "bin").agg(F.max("count").alias("n"))
    inside = (F.col("bin") >= F.col("from_bin")) & (F.col("bin") < F.col("to_bin"))
    return came.join(F.broadcast(table), inside).groupBy("number", "bus").agg(F.sum("n").alias("n"))


def _bin() -> "Column":
    return F.expr(f"ts_ns div {_WIDTH_NS}").alias("bin")


def gaps(rows: "DataFrame", surveyed: "list[Row]", gap_ms: int = GAP_MS) -> list[Pause]:
    """The pauses, to the end of the capture where nobody came back, in which frames were missed."""
    seen = traffic(surveyed)
    served = {name: one for name, one in seen.items() if one.served}
    found = tails(surveyed, served, gap_ms)
    if served:
        found += [Pause(*row) for row in pauses(rows, served, gap_ms).collect()]
    if not found:
        return []
    came: dict[int, dict[str, int]] = defaultdict(dict)
    for row in meanwhile(rows, found).collect():
        came[row.number][row.bus] = row.n
    return [pause for number, pause in enumerate(found) if missed(pause.segment, came[number])]


def tails(surveyed: "Iterable[Row]", served: Mapping[str, Traffic], gap_ms: int) -> list[Pause]:
    """Segments onto which nobody put anything any more before the capture's end."""
    times = [r.last_ns for r in surveyed if r.kind == Kind.FRAME and r.dir == Direction.RX]
    end_ns = max(times, default=0) // _WIDTH_NS * _WIDTH_NS
    return [
        Pause(name, one.last_ns, end_ns)
        for name, one in served.items()
        if end_ns - one.last_ns > gap_ms * _MS
    ]


def missed(segment: str, came: Mapping[str, int]) -> bool:
    """Whether frames came on the busiest other segment, more than the segment itself brought (those were
    not for it): else it was a quiet time."""
    own = came.get(segment, 0)
    others = max((n for name, n in came.items() if name != segment), default=0)
    return max(0, others - own) >= max(MISSED_LEAST, own / ECHOES_MOST)
