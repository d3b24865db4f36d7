"""Buses that trunks join: one segment, of which each hub hears every frame.

The topologies in a capture name them. Without this a frame of such a bus would seem to enter several times.
A hub that puts a frame there for a bridge of its own gateway has heard it as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql import functions as F

from capture.schema import Direction, Hubs, Kind
from pipeline.analysis.shared import inventory, naming, sides
from pipeline.analysis.shared.places import Hearers, Places, as_places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Joined = Mapping[str, str]
"""The name of the segment that buses are together, for each bus that a trunk joins to others."""

_BETWEEN: Final = " + "


def joined(topologies: Iterable[Hubs]) -> Joined:
    """Find the buses that trunks join, by the topologies of a capture."""
    groups = dict[str, set[str]]()
    for hubs in topologies:
        for name, hub in hubs.items():
            _join(groups, [name, *hub.get("trunks", ())])
    return {name: _BETWEEN.join(sorted(group)) for name, group in groups.items() if len(group) > 1}


def _join(groups: dict[str, set[str]], names: list[str]) -> None:
    whole = set[str]().union(names, *(groups.get(name, ()) for name in names))
    groups.update(dict.fromkeys(whole, whole))


def in_rows(rows: "DataFrame", one: Joined) -> "DataFrame":
    """Put the name of the whole segment in place of each bus of it; its hubs hear what they put there."""
    if not one:
        return rows
    bus = F.col("bus")
    for name, segment in one.items():
        bus = F.when(F.col("bus") == name, F.lit(segment)).otherwise(bus)
    is_heard = (F.col("kind") == Kind.FRAME.value) & F.col("hub").isin(sorted(one))
    heard = F.lit(Direction.RX.value).cast("smallint")
    return rows.withColumns({"bus": bus, "dir": F.when(is_heard, heard).otherwise(F.col("dir"))})


def _hearers(taken: "Iterable[Row]", one: Joined) -> Hearers:
    """Find the hubs (gateway, name) that hear each segment of several buses, if more than one is recorded."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in taken:
        if row.kind == Kind.FRAME and row.hub in one:
            found[one[row.hub]].add((row.gateway, row.hub))
    return {segment: frozenset(hubs) for segment, hubs in found.items() if len(hubs) > 1}


def in_inventory(taken: "Iterable[Row]", one: Joined) -> "list[Row]":
    """Put the names of whole segments into the rows of `pipeline.analysis.shared.inventory.take`."""
    return [_renamed(row, one) for row in taken] if one else list(taken)


class Whole(NamedTuple):
    """A capture in which buses that are one have one name, and so has each frame: its `rows`, inventory
    (`taken`) and places."""

    rows: "DataFrame"
    taken: "list[Row]"
    at: Places


def whole(rows: "DataFrame", recorded: "list[Row]") -> Whole:
    """Join the buses in rows and in their inventory, as `recorded`, and find the places."""
    versions = list(inventory.versions(recorded))
    one = joined(version.hubs for version in versions)
    taken = in_inventory(recorded, one)
    named = [version._replace(hubs=_in_topology(version.hubs, one)) for version in versions]
    cuts = sides.cuts(named)
    known = naming.learn(named, cuts)
    cuts |= known.cuts
    steps = {**known.steps, **{bus: known.steps[it] for bus, it in one.items() if it in known.steps}}
    its = tuple(
        version._replace(hubs=sides.in_topology(naming.in_topology(version.hubs, steps), cuts))
        for version in named
    )
    hearers = _hearers(taken, one)
    taken = sides.in_inventory(taken, cuts)
    at = as_places(taken, its, hearers)._replace(cuts=cuts)
    return Whole(sides.in_rows(naming.in_rows(in_rows(rows, one), steps), cuts), taken, at)


def _renamed(row: "Row", one: Joined) -> "Row":
    fields = row.asDict()
    if row.kind == Kind.FRAME and row.hub in one:
        fields["dir"] = Direction.RX.value
    return Row(**{**fields, "bus": one.get(row.bus, row.bus)})


def _in_topology(hubs: Hubs, one: Joined) -> Hubs:
    def named(side: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**side, "segment": one.get(side["segment"], side["segment"])}

    return {name: {**hub, "sides": [*map(named, hub.get("sides", ()))]} for name, hub in hubs.items()}
