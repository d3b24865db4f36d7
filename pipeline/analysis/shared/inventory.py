"""The inventory of a capture: who was where, what the ledgers and the recorders say.

It is added up from the summaries at the end of the files. If a file has none (version 1, or compacted without
it), it takes a pass over narrow columns of all rows. The sums hardly grow with time (a few for each link, and
when each file began), so they are collected, and the tables made of them here.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql import functions as F

from capture import schema
from capture.schema import BRIDGE, Direction, Hubs, Kind, Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEDGER: Final = {
    "gateway": str, "hub": str, "bus": str, "peer": str, "dir": int, "reason": str,
    "count": int, "first_ns": int, "last_ns": int,
}  # fmt: skip
CAPTURE: Final = {
    "gateway": str, "boot": int, "rows": int, "missed": int, "holes": int, "first_ns": int, "last_ns": int,
}  # fmt: skip


_SORT: Final = ("gateway", "boot", "hub", "bus", "dir", "kind", "verdict", "reason", "peer")


def take(
    rows: "DataFrame", recorded: int | None = None, summaries: Sequence[Mapping[str, Any]] = ()
) -> "list[Row]":
    """Collect `summarised`, if that accounts for every row, else `counted`.

    `recorded` is how many rows there are without summaries, where files were asked for that. Else they are
    counted, which reads no column. No engine is asked if the `summaries` that were read with that
    (`pipeline.input.summaries`) account for every row.
    """
    if recorded is not None and summaries and sum(one["contents"]["rows"] for one in summaries) == recorded:
        return added_up(summaries)
    with ThreadPoolExecutor(1) as beside:
        counting = beside.submit(rows.count) if recorded is None else None
        found = summarised(rows).collect()
    if counting is not None:
        recorded = counting.result() - sum(row.summaries for row in found)
    if sum(row.rows for row in found) == recorded:
        return found
    return counted(rows).collect() + [row for row in found if row.kind == Kind.TOPOLOGY]


def summarised(rows: "DataFrame") -> "DataFrame":
    """Add up the summaries in the files, to the columns of `counted`; `summaries` is how many there are."""
    inner = {name: F.col(f"contents.{name}") for name in schema.CONTENTS_FIELDS}
    found = rows.where(F.col("kind") == Kind.CONTENTS.value)
    return _by_sort(found, inner["kind"], F.col("payload"), {
        "rows": F.sum(inner["rows"]), "enveloped": F.sum(inner["enveloped"]), "summaries": F.count(F.lit(1)),
        "last": F.max(inner["last_cap_seq"]), "last_ns": F.max(inner["last_ns"]),
        "topologies": F.collect_set("payload"),
        "began_ns": F.collect_set(F.when(inner["kind"] == Kind.TOPOLOGY.value, F.col("ts_ns"))),
    })  # fmt: skip


def added_up(summaries: Iterable[Mapping[str, Any]]) -> "list[Row]":
    """Add up what `summarised` does, of summaries that have been read."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for one in summaries:
        kind = one["contents"]["kind"]
        sort = {**one, "kind": kind, "peer": one["peer"] if kind == Kind.LEDGER else None}
        groups[*(sort[name] for name in _SORT), one["payload"]].append(one)
    return [Row(**dict(zip(_SORT, key, strict=False)), **_sums(some)) for key, some in groups.items()]


def _sums(some: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the summaries of one sort, to the columns of `summarised`."""
    inner = [one["contents"] for one in some]
    began = {one["ts_ns"] for one in some if one["contents"]["kind"] == Kind.TOPOLOGY}
    return {
        "count": sum(one["count"] for one in some), "first": min(one["cap_seq"] for one in some),
        "first_ns": min(one["ts_ns"] for one in some), "rows": sum(one["rows"] for one in inner),
        "enveloped": sum(one["enveloped"] for one in inner), "summaries": len(some),
        "last": max(one["last_cap_seq"] for one in inner), "last_ns": max(one["last_ns"] for one in inner),
        "topologies": [] if some[0]["payload"] is None else [some[0]["payload"]], "began_ns": sorted(began),
    }  # fmt: skip


def counted(rows: "DataFrame") -> "DataFrame":
    """Count all rows by recorder, place, kind and verdict; a ledger's by link and reason too."""
    recorded = rows.where(F.col("kind") != Kind.CONTENTS.value)
    return _by_sort(recorded, F.col("kind"), F.lit(None).cast("binary"), {
        "rows": F.count(F.lit(1)), "enveloped": F.count("origin"), "summaries": F.lit(0),
        "last": F.max("cap_seq"), "last_ns": F.max("ts_ns"),
        "topologies": F.lit(None), "began_ns": F.lit(None),
    })  # fmt: skip


def _by_sort(rows: "DataFrame", kind: "Column", topology: "Column", sums: "dict[str, Column]") -> "DataFrame":
    """Group rows by recorder, place, `kind`, verdict and topology, those of ledgers by link too, and add them
    up."""
    every = {"count": F.sum("count"), "first": F.min("cap_seq"), "first_ns": F.min("ts_ns"), **sums}
    sorts = {"kind": kind, "peer": F.when(kind == Kind.LEDGER.value, F.col("peer"))}
    columns = [column.alias(name) for name, column in every.items()]
    return rows.withColumns(sorts).groupBy(*_SORT, topology.alias("topology")).agg(*columns).drop("topology")


class Version(NamedTuple):
    """A topology that files of a gateway were recorded under, since the first of them began, or the first
    after others. `boot` is the run of the recorder, and `until_ns` the time of its last row."""

    gateway: str
    from_ns: int
    hubs: Hubs
    boot: int = 0
    until_ns: int = 0


def versions(taken: "Iterable[Row]") -> "Iterator[Version]":
    """Yield the topologies that files were recorded under, for each run of a recorder, in the order in which
    they changed."""
    for (gateway, boot), group in grouped(taken, "gateway", "boot").items():
        until_ns, before = max(row.last_ns for row in group), None
        told = [row for row in group if row.kind == Kind.TOPOLOGY]
        began = [(ns, text) for row in told for text in row.topologies for ns in row.began_ns]
        for from_ns, text in sorted(began):
            if text != before:
                yield Version(gateway, from_ns, json.loads(text), boot, until_ns)
            before = text


def topologies(taken: "Iterable[Row]") -> "Iterator[Hubs]":
    """Yield what `versions` does, without gateways and times."""
    return (one.hubs for one in versions(taken))


def holds(taken: "Iterable[Row]", *kinds: Kind) -> bool:
    """Tell whether there is a row of one of the `kinds`."""
    return any(row.kind in kinds for row in taken)


def carried(taken: "Iterable[Row]") -> "list[Row]":
    """Count the frames that each bridge received from and put onto each segment."""
    groups = grouped(
        (row for row in taken if row.kind == Kind.FRAME and row.hub.startswith(BRIDGE)),
        "gateway",
        "hub",
        "bus",
    )
    sums = {
        key: [sum(row["count"] for row in group if row.dir == way) for way in (Direction.RX, Direction.TX)]
        for key, group in groups.items()
    }
    return [
        Row(gateway=gateway, hub=hub, segment=bus, received=received, put=put)
        for (gateway, hub, bus), (received, put) in sorted(sums.items())
    ]


def grouped(found: "Iterable[Row]", *columns: str) -> dict[tuple[Any, ...], "list[Row]"]:
    """Group rows by the values of `columns`."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        groups[tuple(row[name] for name in columns)].append(row)
    return groups


def ledger(found: "Iterable[Row]") -> list[tuple[Any, ...]]:
    """Add up what the recorders copied from the bridges' ledgers: drops and rejects, as rows of `LEDGER`."""
    dropped = (row for row in found if row.kind == Kind.LEDGER and row.verdict != Verdict.OK)
    groups = grouped(dropped, "gateway", "hub", "bus", "peer", "dir", "reason")
    return [
        (*key, sum(row["count"] for row in groups[key]), *_times(groups[key]))
        for key in sorted(groups, key=_nulls_first)
    ]


class Run(NamedTuple):
    """A run of a gateway's recorder: its first and last number and the times of its first and last row, in ns
    by the gateway's clock. `is_ended`: it has the last row of a recorder that was stopped."""

    gateway: str
    boot: int
    first_seq: int
    first_ns: int
    last_ns: int
    is_ended: bool
    last_seq: int = 0


def runs(found: "Iterable[Row]") -> list[Run]:
    """Find the runs of recorders, from the rows of `take`. What an import wrote is none of them: all its rows
    are of wires, and a recorder writes ledgers too."""
    groups = grouped((row for row in found if row.kind != Kind.TOPOLOGY), "gateway", "boot")
    recorded = (key for key, group in groups.items() if any(row.kind != Kind.WIRE for row in group))
    return [_run(gateway, boot, groups[gateway, boot]) for gateway, boot in sorted(recorded)]


def _run(gateway: str, boot: int, group: "list[Row]") -> Run:
    end = max(group, key=lambda row: row.last)
    return Run(gateway, boot, min(row.first for row in group), *_times(group), end.kind == Kind.GAP, end.last)


def uncaptured(found: "Iterable[Row]") -> list[tuple[Any, ...]]:
    """Add up what the recorders lost, as rows of `CAPTURE`: what they say they missed, and other holes in
    numbers."""
    groups = grouped(found, "gateway", "boot")
    return [(*key, *_missed(groups[key]), *_times(groups[key])) for key in sorted(groups)]


def _missed(group: "list[Row]") -> tuple[int, int, int]:
    rows = sum(row.rows for row in group)
    missed = sum(row["count"] for row in group if row.kind == Kind.GAP)
    numbers = max(row.last for row in group) - min(row.first for row in group) + 1
    return rows, missed, max(0, numbers - rows - missed)


def _times(group: "list[Row]") -> tuple[int, int]:
    return min(row.first_ns for row in group), max(row.last_ns for row in group)


def _nulls_first(key: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)
