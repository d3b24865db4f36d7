"""The clocks of gateways: how far each is ahead, from frames without a fault that crossed between them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from capture.schema import BRIDGE
from pipeline.analysis.shared import sums
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.hops import wire_hops

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.analysis.shared.expected import Expected
    from pipeline.analysis.shared.places import Places

Pair = tuple[str, str, int, int]
"""Two gateways, the shortest time from one to the other as their clocks have it, and how often it was
measured."""
ClockMark = tuple[str, int]
"""A gateway, and when it had a frame."""

Edge = tuple[str, int, int]
"""Another gateway, the time there and back, and how far its clock is ahead, in ns."""

_UNSURE_NS: Final = 1 << 62
"""The number in place of the time there and back, between gateways of which one heard the other only."""
_AT_NS: Final = MappingProxyType({"at_ns": "ts_ns"})


def faultless(
    of_frames: "DataFrame", frame_sums: "DataFrame", expected: "Expected", at: "Places"
) -> "DataFrame":
    """Select the rows of frames without a fault: `key`, gateway, boot, cap_seq, hub, bus, `segment`, dir,
    ts_ns, `home`."""
    good = sums.alike(frame_sums, expected.typical, at).select("key", "home")
    columns = ["key", "gateway", "boot", "cap_seq", "hub", "bus", "segment", "dir", "ts_ns"]
    return of_frames.select(*columns).join(good, "key")


def least(wires: "DataFrame") -> "DataFrame":
    """Find the shortest time seen between each two gateways, as their clocks have it, and how often it was
    measured."""
    return wires.groupBy("from_gateway", "to_gateway").agg(
        F.min(F.col("to_ns") - F.col("from_ns")).alias("least_ns"), F.count(F.lit(1)).alias("n")
    )


class Clock(NamedTuple):
    """A clock that was compared with that of the gateway `against`, and is so many ns ahead of it."""

    against: str
    ahead_ns: int


def offsets(pairs: Iterable[Pair], gateways: Iterable[str], by_one_way: bool = False) -> dict[str, Clock]:
    """Compute how far each clock is ahead: of the first of the gateways with which frames went both ways.

    For two gateways that hear each other, the shortest times there and back are taken as equal: half of their
    difference is that of the clocks. Others are reached over those in between, by which the times there and
    back add up to least: the difference cannot be wrong by more than half of that. With `by_one_way`, clocks
    between which frames went one way only are compared too, as if the fastest of these took no time.
    """
    edges = _edges(pairs, by_one_way)
    found: dict[str, Clock] = {}
    for first in gateways:
        queue = [(0, first, 0)]
        while queue:
            far_ns, here, ahead = heappop(queue)
            if here not in found:
                found[here] = Clock(first, ahead)
                for other, its_ns, more in edges[here]:
                    heappush(queue, (far_ns + its_ns, other, ahead + more))
    return found


def _edges(pairs: Iterable[Pair], by_one_way: bool) -> Mapping[str, Sequence[Edge]]:
    """Find the clocks that can be compared with each one; what went both ways is better, however slow."""
    shortest = dict[tuple[str, str], int]()
    for a, b, ns, _ in pairs:
        shortest[a, b] = min(ns, shortest.get((a, b), ns))
    edges: dict[str, list[Edge]] = defaultdict(list)
    for (a, b), there in shortest.items():
        back = shortest.get((b, a))
        if back is not None:
            edges[a].append((b, max(0, there + back), (there - back) // 2))
        elif by_one_way:
            edges[a].append((b, _UNSURE_NS, there))
            edges[b].append((a, _UNSURE_NS, -there))
    return edges


def clocks_of(picked: "DataFrame", at: "Places") -> dict[str, int]:
    """Measure how far clocks are ahead, in ns, by the frames without a fault among those `picked`
    (`pipeline.analysis.audit.suspects`)."""
    if len(_gateways(at)) < 2:
        return {}
    good = picked.where("home is not null")
    times = good.withColumns({"segment": F.col("bus"), "ts_ns": F.col("first_ns")})
    return ahead_by(least(wire_hops(times)).collect(), at)


def least_of(rows: Iterable[tuple[int, str, str, str, int, int]]) -> list[Pair]:
    """Find what `least` does, in Python: of rows with the key of a frame, gateway, hub, bus, direction and
    time."""
    ends: dict[tuple[int, str], tuple[list[ClockMark], list[ClockMark]]] = defaultdict(lambda: ([], []))
    for key, gateway, hub, bus, way, at_ns in rows:
        if hub.startswith(BRIDGE):
            ends[key, bus][way].append((gateway, at_ns))
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for heard, sent in ends.values():
        for (one, from_ns), (other, to_ns) in product(sent, heard):
            if one != other:
                times[one, other].append(to_ns - from_ns)
    return [(*names, min(found), len(found)) for names, found in times.items()]


def ahead_by(pairs: Iterable[Pair], at: "Places") -> dict[str, int]:
    """Compute how far clocks are ahead, in ns, by what was measured between each two; of frames that went one
    way only too, for a wire takes little time beside what a clock may be wrong by.

    Clocks that are not ahead are left out.
    """
    found = offsets(pairs, _gateways(at), by_one_way=True)
    return {gateway: clock.ahead_ns for gateway, clock in found.items() if clock.ahead_ns}


def _gateways(at: "Places") -> list[str]:
    return sorted({gateway for gateway, _ in at.hubs})


def at_one_clock(
    rows: "DataFrame", ahead: Mapping[str, int], times: Mapping[str, str] = _AT_NS
) -> "DataFrame":
    """Add times by one clock, as far as clocks can be compared. `times` names them, and the
    columns that they are made of: `at_ns` of `ts_ns` by default."""
    if not ahead:
        return rows.withColumns({new: F.col(name) for new, name in times.items()})
    table = local_table(rows.sparkSession, {"gateway": str, "ahead_ns": int}, list(ahead.items()))
    joined = rows.join(F.broadcast(table), "gateway", "left")
    ahead_ns = F.coalesce("ahead_ns", F.lit(0))
    return joined.withColumns({new: F.col(name) - ahead_ns for new, name in times.items()}).drop("ahead_ns")
