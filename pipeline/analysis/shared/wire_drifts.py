"""The drift of gateways' clocks, as exactly as wires tell it: by the shortest times there and back, in many
slots of a capture. A time of wires that is measured by two clocks is wrong by what they drifted since.

`drifts` finds what is wrong by a second, by equal frames; here every pair of clocks is looked at that frames
crossed both ways.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from statistics import median_low
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from capture.schema import Kind
from pipeline.analysis.shared.clocks import Pair
from pipeline.analysis.shared.drifts import Drift, Points, against, ahead_at, evened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_SLOTS: Final = 60
_SHORTEST_NS: Final = 1_000_000_000
_EXACT_NS: Final = 50_000
"""Less is left as it is, however short the times there and back."""
_NOISE: Final = 4
"""A point is a bend if it lies so many times as far from a line as points do."""


class Slot(NamedTuple):
    """A time by the clock of the first of two gateways, how far the second is ahead then, the shortest time
    there and back, and how much later the way back was measured than the way there, in ns."""

    at_ns: int
    ahead_ns: int
    trip_ns: int
    later_ns: int = 0


def width_ns(entries: "Iterable[Row]") -> int:
    """Return the width of slots: a 60th of the longest time between frames of a gateway, by the inventory, at
    least a second."""
    begins, ends = dict[str, int](), dict[str, int]()
    for row in (row for row in entries if row.kind == Kind.FRAME):
        begins[row.gateway] = min(row.first_ns, begins.get(row.gateway, row.first_ns))
        ends[row.gateway] = max(row.last_ns, ends.get(row.gateway, row.last_ns))
    longest = max((end - begins[gateway] for gateway, end in ends.items()), default=0)
    return max(_SHORTEST_NS, longest // _SLOTS)


def least(wires: "DataFrame", slot_ns: int) -> "DataFrame":
    """Find the shortest time seen between each two gateways in each `slot`, as their clocks have it, when it
    was seen (`at_ns`), by the clock of the gateway whose name is first, and how often times were."""
    is_first = F.col("from_gateway") < F.col("to_gateway")
    timed = wires.withColumn("at_ns", F.when(is_first, F.col("from_ns")).otherwise(F.col("to_ns")))
    slot = F.expr(f"at_ns div {slot_ns}").alias("slot")
    took = F.struct((F.col("to_ns") - F.col("from_ns")).alias("ns"), F.col("at_ns"))
    each = timed.groupBy("from_gateway", "to_gateway", slot)
    found = each.agg(F.min(took).alias("least"), F.count(F.lit(1)).alias("n"))
    names = F.col("least.ns").alias("least_ns"), F.col("least.at_ns").alias("at_ns")
    return found.select("from_gateway", "to_gateway", "slot", *names, "n")


def pairs(found: "Iterable[Row]") -> list[Pair]:
    """Return of the rows of `least` what was measured between each two gateways in all."""
    return [(row.from_gateway, row.to_gateway, row.least_ns, row.n) for row in found]


def drifts(found: "Iterable[Row]", gateways: Collection[str]) -> list[Drift]:
    """Find the clocks that drifted, from the rows of `least`: how far each ran ahead since its first point,
    against the first of the `gateways` with which it can be compared."""
    apart = {pair: drifted(slots) for pair, slots in _slots(found).items()}
    known = against(gateways, apart)
    since = (Drift(gateway, _since(points)) for gateway, points in known.items() if points)
    return [one for one in since if any(ahead_ns for _, ahead_ns in one.points)]


def _slots(found: "Iterable[Row]") -> Mapping[tuple[str, str], list[Slot]]:
    """Put together what went one way and the other in each slot."""
    ways = {(row.from_gateway, row.to_gateway, row.slot): row for row in found}
    slots: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    for (one, other, number), there in ways.items():
        back = ways.get((other, one, number))
        if one < other and back is not None:
            middle_ns, later_ns = (there.at_ns + back.at_ns) // 2, back.at_ns - there.at_ns
            trip_ns, apart_ns = there.least_ns + back.least_ns, there.least_ns - back.least_ns
            slots[one, other].append(Slot(middle_ns, apart_ns // 2, trip_ns, later_ns))
    return slots


def drifted(slots: Iterable[Slot]) -> Points:
    """Return how far a clock was ahead, at the points between which it ran evenly; always as far if it
    drifted by no more than one way may be slower than the other.

    A slot is wrong by half of its time there and back at most, so those with longer times do not count.
    """
    in_order = sorted(slots)
    trips_ns = _trips_ns(in_order)
    usual_ns = median_low(trips_ns)
    are_short = (trip_ns <= usual_ns + _EXACT_NS for trip_ns in trips_ns)
    points = [(slot.at_ns, slot.ahead_ns) for slot in compress(in_order, are_short)]
    ends, sure_ns = sorted({in_order[0].at_ns, in_order[-1].at_ns}), max(_EXACT_NS, usual_ns // 2)
    least_ns, most_ns = (choose(ahead_ns for _, ahead_ns in points) for choose in (min, max))
    if most_ns - least_ns <= 2 * sure_ns:
        return [(at_ns, points[0][1]) for at_ns in ends]
    bends = evened(points, min(sure_ns, max(_EXACT_NS, _NOISE * _noise_ns(points))))
    return [(at_ns, ahead_at(bends, at_ns)) for at_ns in sorted({*ends, *(at_ns for at_ns, _ in bends)})]


def _trips_ns(slots: Sequence[Slot]) -> list[int]:
    """Return the times there and back as if clocks had not drifted within a slot, by the slots beside it."""
    beside = zip([slots[0], *slots], slots, [*slots[1:], slots[-1]], strict=False)
    return [
        slot.trip_ns
        + slot.later_ns * (after.ahead_ns - before.ahead_ns) // max(1, after.at_ns - before.at_ns)
        for before, slot, after in beside
    ]


def _noise_ns(points: Points) -> int:
    """Return how far points lie from the line between their neighbours, by the median."""
    near = zip(points, points[2:], points[1:], strict=False)
    return median_low([abs(ahead_ns - ahead_at(ends, at_ns)) for *ends, (at_ns, ahead_ns) in near] or [0])


def _since(points: Points) -> Points:
    first_ns = points[0][1]
    return [(at_ns, ahead_ns - first_ns) for at_ns, ahead_ns in points]
