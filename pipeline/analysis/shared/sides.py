"""The sides of bridges, as topologies tell them: where frames keep their content, and where not.

Behind a side with a protocol frames are items of devices: a translation, which is compared by counts. Such a
side has a segment of its own for each direction, so that nothing is expected to come back as it was sent.
`pipeline.analysis.shared.naming` follows sides that rename; one that cannot be followed is divided too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql import functions as F

from capture.schema import BRIDGE, Direction, Hubs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.analysis.shared.inventory import Version

SidePlace = tuple[str, str]
"""The name of a bridge, and the segment of a side."""

IN = Direction.RX
_TOLD: Final = ("protocol", "same", "renamed", "strip", "names", "opaque")
STRIPPED: Final = "strip by a number of tokens, and others tell frames apart by them"
UNTOLD: Final = "an older capture tells that it renames, and not how"
CHANGED: Final = "its names or its protocol changed meanwhile"


class Cut(NamedTuple):
    """A side behind which frames are not followed: the names of its segment for what comes in and for what
    goes out, the `protocol` there, or "" and `why` not."""

    inward: str
    outward: str
    protocol: str
    why: str = ""

    def named(self, way: int) -> str:
        return self.inward if way == IN else self.outward


Cuts = Mapping[SidePlace, Cut]


def told(versions: "Iterable[Version]") -> dict[SidePlace, list[Mapping[str, Any]]]:
    """Collect what topologies tell of each side of each bridge, without repetitions."""
    found: dict[SidePlace, list[Mapping[str, Any]]] = defaultdict(list)
    for version in versions:
        for hub, its in version.hubs.items():
            for side in its.get("sides", ()) if hub.startswith(BRIDGE) else ():
                front = {name: side[name] for name in _TOLD if name in side}
                if front not in found[hub, side["segment"]]:
                    found[hub, side["segment"]].append(front)
    return found


def cuts(versions: "Iterable[Version]") -> dict[SidePlace, Cut]:
    """Find the sides behind which frames are not followed."""
    sides = told(versions)
    hubs: dict[str, set[str]] = defaultdict(set)
    for hub, segment in sides:
        hubs[segment].add(hub)
    return {place: made for place, some in sides.items() if (made := _cut(place, some, hubs[place[1]]))}


def _cut(place: SidePlace, some: list[Mapping[str, Any]], hubs: set[str]) -> Cut | None:
    front = some[0]
    protocol = front.get("protocol", "")
    if protocol and len(some) == 1 and front.get("same"):
        name = f"{place[1]} of {protocol} {front['same']}" if len(hubs) > 1 else place[1]
        return Cut(name, name, protocol)
    why = next((why for why, is_so in _reasons(some) if is_so), "")
    return divided(place, protocol, why, alone=len(hubs) == 1) if protocol or why else None


def divided(place: SidePlace, protocol: str, why: str, alone: bool) -> Cut:
    """Return a cut with a name for each direction. `alone`: no other bridge has a side there."""
    is_wire = protocol and alone
    return Cut(f"{place[1]} (received)" if is_wire else f"{place[1]} as {place[0]} received it",
               place[1] if is_wire else f"{place[1]} as {place[0]} sent it", protocol, why)  # fmt: skip


def _reasons(some: list[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    front = some[0]
    yield CHANGED, len(some) > 1
    yield STRIPPED, "strip" in front and "names" not in front
    yield UNTOLD, "renamed" in front and not front.keys() & {"names", "opaque", "strip"}


def in_rows(rows: "DataFrame", found: Cuts) -> "DataFrame":
    """Put the names of their segments into rows of cut sides."""
    if not found:
        return rows
    bus, received = F.col("bus"), F.col("dir") == IN.value
    for (hub, segment), cut in sorted(found.items()):
        is_its = (F.col("hub") == hub) & (F.col("bus") == segment)
        bus = F.when(is_its & received, F.lit(cut.inward)).when(is_its, F.lit(cut.outward)).otherwise(bus)
    return rows.withColumn("bus", bus)


def in_inventory(taken: "list[Row]", found: Cuts) -> "list[Row]":
    """Put the names of their segments into rows of `pipeline.analysis.shared.inventory.take`."""
    return [_named(row, found) for row in taken] if found else taken


def _named(row: "Row", found: Cuts) -> "Row":
    cut = found.get((row.hub, row.bus))
    return row if cut is None else Row(**{**row.asDict(), "bus": cut.named(row.dir)})


def in_topology(hubs: Hubs, found: Cuts) -> Hubs:
    """Return a topology in which each cut side is two, one for each direction.

    A side that strips tokens by their number lets nothing out.
    """
    return {name: {**hub, "sides": [*_sides(name, hub, found)]} for name, hub in hubs.items()}


def _sides(name: str, hub: Mapping[str, Any], found: Cuts) -> Iterator[Mapping[str, Any]]:
    for side in hub.get("sides", ()):
        cut = found.get((name, side["segment"]))
        if cut is None or cut.inward == cut.outward:
            one_way = {"only": "in"} if "strip" in side else {}
            yield {**side, "segment": side["segment"] if cut is None else cut.inward, **one_way}
        else:
            wire = side["segment"]
            yield {**side, "segment": cut.inward, "only": "in", "wire": wire}
            if "strip" not in side:
                yield {**side, "segment": cut.outward, "only": "out", "wire": wire}
