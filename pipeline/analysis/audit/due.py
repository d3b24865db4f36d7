"""The segments that are due by the topologies: frames have to reach them, even if none of their kind did.

The audit learns where frames of one home and flow go from those that went there. Where none did, the
topologies tell: if every one of a capture lets such frames over a bridge that carried others the same way,
they had to cross. Nothing is said of a link that had nobody for a while. Pure.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from bus.vacancy import NO_DEVICE, NO_PEER
from capture.schema import Kind
from pipeline.analysis.audit.ways import SegmentPair, Ways, of_hubs, reached, shown
from pipeline.analysis.shared.courses import courses
from pipeline.analysis.shared.expected import Kept
from pipeline.analysis.shared.frames import NO_FRAME
from pipeline.analysis.shared.inventory import Version
from pipeline.analysis.shared.places import Patterns, Places

if TYPE_CHECKING:
    from pyspark.sql import Row

Due = Mapping[tuple[int, int], frozenset[int]]
"""The numbers of segments that frames of a home and flow have to reach."""

_NOBODY: Final = (NO_PEER, NO_DEVICE)


def due(kept: Iterable[Kept], taken: "Iterable[Row]", at: Places) -> Due:
    """Find what is due, from the rows of `pipeline.analysis.shared.inventory.take`."""
    if not at.versions:
        return {}
    taken = list(taken)
    traffic, vacant = shown(taken), _vacant(taken)
    by_begun: dict[int, Ways] = {}
    back: dict[str, set[str]] = defaultdict(set)  # the same wires, where nothing is to come back
    for cut in at.cuts.values():
        back[cut.inward].add(cut.outward)
    found = {}
    for home, flow, begun in kept:
        if flow != NO_FRAME:  # only some media carry messages that are no frames
            if begun not in by_begun:
                by_begun[begun] = _carried(always(at.versions, at.filters, begun), traffic, vacant)
            names = reached(at.segments[home], by_begun[begun]) - back.get(at.segments[home], set())
            found[home, flow] = frozenset(map(at.segments.index, names)) - {home}
    return found


def always(versions: Iterable[Version], patterns: Patterns, begun: int) -> Ways:
    """Return the ways that surely let frames pass in each topology of each course that has the bridge."""
    every: dict[str, list[frozenset[SegmentPair]]] = defaultdict(list)
    for course in courses(versions):
        told = [of_hubs(one.hubs, patterns, begun, is_sure=True) for one in course]
        for hub in {name for ways in told for name in ways}:
            every[hub] += [ways.get(hub, frozenset()) for ways in told]
    return {hub: reduce(and_, some) for hub, some in every.items()}


def _carried(ways: Ways, traffic: Ways, vacant: Iterable[tuple[str, str]]) -> Ways:
    return {
        hub: frozenset(way for way in some & traffic.get(hub, frozenset()) if (hub, way[1]) not in vacant)
        for hub, some in ways.items()
    }


def _vacant(taken: "Iterable[Row]") -> set[tuple[str, str]]:
    """Find the sides that had nobody for a while, by the ledgers."""
    return {(row.hub, row.bus) for row in taken if row.kind == Kind.LEDGER and row.reason in _NOBODY}
