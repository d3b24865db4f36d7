"""What is in a capture: who was where, what the ledgers and the recorders say.

Segments tell it at their end; where one does not (of version 1, or compacted without), it takes a pass over
narrow columns of all rows. The sums do not grow with time (a few for each pipe), so they are collected, and
the tables made of them here.
"""

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from capture import schema
from capture.schema import BRIDGE, Direction, Kind, Verdict
from pipeline.expected import SEGMENTS_A_WORD
from pipeline.explain import Ways

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

LEDGER: Final = {
    "gateway": str, "hub": str, "bus": str, "peer": str, "dir": int, "reason": str,
    "count": int, "first_ns": int, "last_ns": int,
}  # fmt: skip
CAPTURE: Final = {
    "gateway": str, "boot": int, "rows": int, "missed": int, "holes": int, "first_ns": int, "last_ns": int,
}  # fmt: skip


class Places(NamedTuple):
    """Segments and hubs (by gateway and name), and who puts frames onto which segment."""

    segments: tuple[str, ...]
    hubs: tuple[tuple[str, str], ...]
    ways: Ways
    by_envelope: bool

    @property
    def words(self) -> int:
        return max(1, -(-len(self.segments) // SEGMENTS_A_WORD))


_SORT: Final = ("gateway", "boot", "hub", "bus", "dir", "kind", "verdict", "reason", "peer")


def look(rows: "DataFrame") -> "list[Row]":
    """`told`, if that accounts for every row (a count that reads no column), else `survey`."""
    with ThreadPoolExecutor(1) as beside:
        every = beside.submit(rows.count)
        found = told(rows).collect()
    if sum(row.rows + row.tellers for row in found) == every.result():
        return found
    return survey(rows).collect()


def told(rows: "DataFrame") -> "DataFrame":
    """What segments say that they hold, as `survey` has it, by so many rows (`tellers`)."""
    inner = {name: F.col(f"contents.{name}") for name in schema.CONTENTS_FIELDS}
    telling = rows.where(F.col("kind") == Kind.CONTENTS.value).withColumns(
        {"kind": inner["kind"], "peer": _peer(inner["kind"])}
    )
    return telling.groupBy(*_SORT).agg(
        F.sum(inner["rows"]).alias("rows"), F.sum(inner["enveloped"]).alias("enveloped"),
        F.sum("count").alias("count"), F.count(F.lit(1)).alias("tellers"),
        F.min("cap_seq").alias("first"), F.max(inner["last_cap_seq"]).alias("last"),
        F.min("ts_ns").alias("first_ns"), F.max(inner["last_ns"]).alias("last_ns"),
    )  # fmt: skip


def survey(rows: "DataFrame") -> "DataFrame":
    """One row for each sort of rows, by recorder, place, kind and verdict; a ledger's by pipe and reason."""
    recorded = rows.where(F.col("kind") != Kind.CONTENTS.value)
    return recorded.withColumn("peer", _peer(F.col("kind"))).groupBy(*_SORT).agg(
        F.count(F.lit(1)).alias("rows"), F.count("origin").alias("enveloped"),
        F.sum("count").alias("count"), F.lit(0).alias("tellers"),
        F.min("cap_seq").alias("first"), F.max("cap_seq").alias("last"),
        F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns"),
    )  # fmt: skip


def _peer(kind: "Column") -> "Column":
    return F.when(kind == Kind.LEDGER.value, F.col("peer"))


def places(rows: "DataFrame") -> Places:
    """Of the frames in `rows`."""
    return as_places(look(rows))


def as_places(found: "Iterable[Row]") -> Places:
    """From the rows of `look`."""
    found = [row for row in found if row.kind == Kind.FRAME]
    segments = tuple(sorted({row.bus for row in found}))
    hubs = tuple(sorted({(row.gateway, row.hub) for row in found}))
    bridges = [row for row in found if row.hub.startswith(BRIDGE)]
    puts = {(row.hub, row.bus) for row in bridges if row.dir == Direction.TX}
    takes = {(row.hub, row.bus) for row in bridges if row.dir == Direction.RX}
    wires = frozenset(bus for hub, bus in puts if any(b == bus and h != hub for h, b in takes))
    carriers = frozenset(((r.gateway, r.hub), r.bus) for r in bridges if r.dir == Direction.TX)
    enveloped = all(row.rows == row.enveloped for row in found)
    return Places(segments, hubs, Ways(carriers, wires), enveloped)


def ledger(found: "Iterable[Row]") -> list[tuple[Any, ...]]:
    """What the recorders copied from the bridges' ledgers: drops and rejects by pipe and reason, as
    `LEDGER` has it."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        if row.kind == Kind.LEDGER and row.verdict != Verdict.OK:
            groups[row.gateway, row.hub, row.bus, row.peer, row.dir, row.reason].append(row)
    return [
        (*key, sum(row["count"] for row in groups[key]), *_times(groups[key]))
        for key in sorted(groups, key=_nulls_first)
    ]


def uncaptured(found: "Iterable[Row]") -> list[tuple[Any, ...]]:
    """What the recorders lost themselves: messages they say they missed, and holes in their numbering, as
    `CAPTURE` has it."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        groups[row.gateway, row.boot].append(row)
    return [(*key, *_missed(groups[key]), *_times(groups[key])) for key in sorted(groups)]


def _missed(group: "list[Row]") -> tuple[int, int, int]:
    rows = sum(row.rows for row in group)
    missed = sum(row["count"] for row in group if row.kind == Kind.GAP)
    numbers = max(row.last for row in group) - min(row.first for row in group) + 1
    return rows, missed, numbers - rows


def _times(group: "list[Row]") -> tuple[int, int]:
    return min(row.first_ns for row in group), max(row.last_ns for row in group)


def _nulls_first(key: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)
