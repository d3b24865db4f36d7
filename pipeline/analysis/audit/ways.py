"""The ways of frames over bridges: from which segment each bridge takes which frames, and onto which it puts
them.

The topologies in a capture say it, filters included. Of a bridge that is in none of them, the traffic shows
the segments that it takes from and puts onto. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capture.schema import BRIDGE, Direction, Hubs, Kind
from pipeline.analysis.shared.filters import NUMBERED_MOST
from pipeline.analysis.shared.places import Patterns, patterns_in

if TYPE_CHECKING:
    from pyspark.sql import Row

SegmentPair = tuple[str, str]
"""Two segments: a bridge takes from the first and puts onto the second."""
Ways = Mapping[str, frozenset[SegmentPair]]
"""The ways of each bridge, by the name of its hubs."""


def shown(taken: "Iterable[Row]") -> Ways:
    """Find the ways that the traffic shows, from the rows of `pipeline.analysis.shared.inventory.take`."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for row in taken:
        if row.kind == Kind.FRAME and row.hub.startswith(BRIDGE):
            found.setdefault(row.hub, (set(), set()))[row.dir == Direction.TX].add(row.bus)
    return {
        hub: frozenset((one, other) for one in takes for other in puts if one != other)
        for hub, (takes, puts) in found.items()
    }


def of_flow(traffic: Ways, topologies: Iterable[Hubs], patterns: Patterns, begun: int) -> Ways:
    """Return the ways of frames of one flow, which start with those `patterns` that are set in `begun`."""
    told: dict[str, frozenset[SegmentPair]] = {}
    for hubs in topologies:
        for name, its in of_hubs(hubs, patterns, begun).items():
            told[name] = told.get(name, frozenset()) | its
    return {**traffic, **told}


def of_hubs(hubs: Hubs, patterns: Patterns, begun: int, is_sure: bool = False) -> Ways:
    """Return the ways of frames of one flow by one topology; with `is_sure`, those alone that surely let them
    pass."""
    passing = _Passing(patterns, begun, is_sure)
    return {name: frozenset(passing.ways(hub)) for name, hub in hubs.items() if name.startswith(BRIDGE)}


class _Passing:
    """The judgement which filters the frames of one flow pass. A pattern that has no number may begin
    them, and where only what `is_sure` counts, it keeps them out."""

    def __init__(self, patterns: Patterns, begun: int, is_sure: bool) -> None:
        self._may = not is_sure
        numbered = patterns[:NUMBERED_MOST]
        self._begun = {pattern: bool(begun >> number & 1) for number, pattern in enumerate(numbered)}

    def _starts(self, pattern: Sequence[int], unknown: bool) -> bool:
        return not pattern or self._begun.get(tuple(pattern), unknown)

    def _lets(self, side: Mapping[str, Any], way: str) -> bool:
        if side.get("only", way) != way or (side.get("deep") and not self._may):
            return False
        allow = [*side.get("allow", ()), *side.get(f"allow_{way}", ())]
        deny = [*side.get("deny", ()), *side.get(f"deny_{way}", ())]
        kept_out = any(self._starts(pattern, unknown=not self._may) for pattern in deny)
        return not kept_out and (not allow or any(self._starts(one, unknown=self._may) for one in allow))

    def ways(self, hub: Mapping[str, Any]) -> Iterator[SegmentPair]:
        if not any(self._starts(one, unknown=self._may) for one in patterns_in(hub)):
            return
        sides = hub.get("sides", ())
        for one in (side for side in sides if self._lets(side, "in")):
            for other in (side for side in sides if self._lets(side, "out")):
                if one.get("wire", one["segment"]) != other.get("wire", other["segment"]):
                    yield one["segment"], other["segment"]


def reached(home: str, ways: Ways, without: str = "") -> set[str]:
    """Return the segments that a frame can reach from its home, perhaps without one bridge."""
    found, before = {home}, set[str]()
    while found != before:
        before = set(found)
        for hub, pairs in ways.items():
            if hub != without:
                found |= {other for one, other in pairs if one in found}
    return found


def needed(home: str, ways: Ways) -> dict[str, list[str]]:
    """Find, for each segment, the bridges without which a frame of a home cannot reach it."""
    whole = reached(home, ways)
    found: dict[str, list[str]] = {target: [] for target in whole}
    for hub in sorted(ways):
        for target in whole - reached(home, ways, hub):
            found[target].append(hub)
    return found


def are_parallel(ways: Ways) -> bool:
    """Return whether two bridges join the same two segments: then neither is needed, as one may stand in."""
    joined = [{frozenset(pair) for pair in pairs} for pairs in ways.values()]
    return any(one & other for n, one in enumerate(joined) for other in joined[n + 1 :])
