"""The drift of gateways' clocks: how much faster or slower one ran than another, by equal frames of both.

At many times of a capture equal frames of two gateways are compared. Frames that repeat agree at several
distances, so the distance is followed from one time to the next, between which it changes little.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis.shared.frames import content, frames, is_told, received
from pipeline.analysis.shared.inventory import Run

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LONG_NS: Final = 300_000_000_000
"""A shorter capture is not looked at: in it a clock drifts by less than a second."""
DRIFT_NS: Final = 1_000_000_000
"""Less is left as it is: equal frames are matched within two seconds."""
FAR_NS: Final = 5_000_000_000
"""Clocks that are farther apart are not compared here."""
BIN_NS: Final = 20_000_000
_TIMES: Final = 60
_ROWS: Final = 120  # of a gateway, at each time
_MANY: Final = 10 * _ROWS
_WIDTH_NS: Final = (500_000_000, 20_000_000_000)
_PPM: Final = 4_000  # by which a clock may run otherwise than before
_NEAR_NS: Final = 60_000_000
_OFTEN_NS: Final = 2 * _NEAR_NS  # frames that repeat within it agree everywhere
_LEAST: Final = 10  # frames
_SURE: Final = 0.5  # of the most that agree at any distance
_PIECES: Final = 20
_EXACT_NS: Final = 20_000_000

Bins = Mapping[int, tuple[int, int]]
"""The frames that have an equal one so far, and the mean distance in ns, by distance in `BIN_NS`."""
Points = Sequence[tuple[int, int]]
"""Times by a clock, and by how much it is ahead then, in ns."""


_NO_POINTS: Final[Points] = ()


class Drift(NamedTuple):
    """The clock of a gateway, by `points` between which it ran evenly."""

    gateway: str
    points: Points

    @property
    def by_ns(self) -> int:
        """By how much it ran ahead, from its first point to its last."""
        return self.points[-1][1] - self.points[0][1]


class Plan(NamedTuple):
    """The times at which clocks are compared: every `step_ns` since `begin_ns`, for `width_ns`; by the frames
    of one in `one_in` contents."""

    begin_ns: int
    step_ns: int
    width_ns: int
    one_in: int = 1

    @property
    def often(self) -> int:
        """The number of equal frames of a gateway at one time beyond which they tell no distance."""
        return (self.width_ns + 2 * FAR_NS) // _OFTEN_NS


def drifts(rows: "DataFrame", runs: Sequence[Run]) -> list[Drift]:
    """Find the clocks that drift, by one pass over narrow columns."""
    plan = planned(runs)
    if plan is None:
        return []
    pairs = compared(rows, plan).collect()
    bins = {(row.other, row.its): defaultdict[int, dict[int, tuple[int, int]]](dict) for row in pairs}
    for row in pairs:
        bins[row.other, row.its][row.number][row.bin] = row.n, int(row.mean_ns)
    apart = {pair: followed(times, plan) for pair, times in bins.items()}
    known = against(sorted({run.gateway for run in runs}), apart)
    found = (Drift(gateway, evened(points)) for gateway, points in known.items() if points)
    return [one for one in found if _spread(one.points) > DRIFT_NS]


def against(gateways: Iterable[str], apart: Mapping[tuple[str, str], Points]) -> dict[str, Points]:
    """Return how far each clock was ahead of that of the first gateway with which it can be compared, perhaps
    by way of others: `apart` is how far the second of two gateways is ahead of the first. Times are by the
    clock that is ahead, but in `apart` by that of the first."""
    links: dict[str, dict[str, Points]] = defaultdict(dict)
    for (one, other), points in apart.items():
        if points:
            links[one][other] = points
            links[other][one] = [(at + ahead, -ahead) for at, ahead in points]
    known: dict[str, Points] = {}
    for first in gateways:
        queue = deque([(first, _NO_POINTS)])
        while queue:
            here, points = queue.popleft()
            if here not in known:
                known[here] = points
                queue.extend((other, _added(its, points)) for other, its in sorted(links[here].items()))
    return known


def _added(points: Points, more: Points) -> Points:
    begin, end = points[0][0], points[-1][0]
    times = {at for at, _ in points} | {at for at, _ in more if begin <= at <= end}
    both = ((at, ahead_at(points, at)) for at in sorted(times))
    return [(at + ahead, ahead + ahead_at(more, at)) for at, ahead in both]


def planned(runs: Sequence[Run]) -> Plan | None:
    """Choose when to compare clocks; None if the capture is too short, or if one gateway alone has rows."""
    begin, end = min(run.first_ns for run in runs), max(run.last_ns for run in runs)
    rows = Counter[str]()
    for run in runs:
        rows[run.gateway] += run.last_seq - run.first_seq
    rows = +rows  # one that stood by has its last row alone
    if end - begin < LONG_NS or len(rows) < 2:
        return None
    least, most = _WIDTH_NS
    length, fewest = end - begin, min(rows.values())
    width = min(max(_ROWS * length // fewest, least), most)
    one_in = max(1, fewest * width // (_MANY * length))
    return Plan(begin, max(length // _TIMES, width + 2 * FAR_NS), width, one_in)


def compared(rows: "DataFrame", plan: Plan) -> "DataFrame":
    """Count the pairs of equal frames of two gateways, `its` ahead of `other`, at each time (`number`) and
    distance (`bin`, with the `mean_ns`). Frames that repeat often are left out: there are pairs of them at
    all distances, and as many as the square of their number."""
    heard = frames(rows).where(received() & ~is_told())
    passed = heard.select("gateway", "ts_ns", content().alias("content"))
    if plan.one_in > 1:
        passed = passed.where(F.pmod("content", F.lit(plan.one_in)) == 0)

    def near(extra_ns: int, gateway: str, at_ns: str) -> "DataFrame":
        since = F.col("ts_ns") - plan.begin_ns + extra_ns
        inside = F.pmod(since, F.lit(plan.step_ns)) < plan.width_ns + 2 * extra_ns
        number = F.floor(since / plan.step_ns).cast("int").alias("number")
        names = F.col("gateway").alias(gateway), F.col("ts_ns").alias(at_ns)
        return passed.where(inside).select("content", number, *names)

    others, same = near(FAR_NS, "other", "other_ns"), ["content", "number"]
    repeated = others.groupBy(*same, "other").count().where(F.col("count") > plan.often)
    few = near(0, "its", "at_ns").join(repeated.select(*same).distinct(), same, "left_anti")
    pairs = few.join(others, same)
    apart = F.col("at_ns") - F.col("other_ns")
    found = pairs.where(F.col("other") < F.col("its")).withColumn("apart_ns", apart)
    near_by = found.where(F.abs("apart_ns") <= FAR_NS)
    bin_of = F.floor(F.col("apart_ns") / BIN_NS).cast("int").alias("bin")
    return near_by.groupBy("its", "other", "number", bin_of).agg(
        F.count(F.lit(1)).alias("n"), F.avg("apart_ns").alias("mean_ns")
    )


def followed(times: Mapping[int, Bins], plan: Plan) -> Points:
    """Follow the distance of two clocks through the times at which equal frames tell it."""
    found: list[tuple[int, int]] = []
    for number in sorted(times):
        at_ns = plan.begin_ns + number * plan.step_ns + plan.width_ns // 2
        ahead = _nearest(times[number]) if not found else _next(times[number], found, at_ns)
        if ahead is not None:
            found.append((at_ns, ahead))
    return found


def _clear(bins: Bins) -> list[int]:
    """Return the distances at which many frames agree; a distance at the edge of a bin is in two."""
    both = {one: bins.get(one, (0, 0))[0] + bins.get(one + 1, (0, 0))[0] for one in bins}
    most = max(both.values(), default=0)
    return [bins[one][1] for one, count in both.items() if count >= max(_LEAST, _SURE * most)]


def _nearest(bins: Bins) -> int | None:
    return min(_clear(bins), key=abs, default=None)


def _next(bins: Bins, found: Points, at_ns: int) -> int | None:
    since_ns, ahead = at_ns - found[-1][0], found[-1][1]
    if len(found) > 1:
        first, last = found[max(0, len(found) - 5)], found[-1]
        ahead += (last[1] - first[1]) * since_ns // (last[0] - first[0])
    reach = max(_NEAR_NS, since_ns * _PPM // 1_000_000)
    near = [one for one in _clear(bins) if abs(one - ahead) <= reach]
    return min(near, key=lambda one: abs(one - ahead), default=None)


def evened(points: Points, exact_ns: int = _EXACT_NS) -> Points:
    """Leave out the points that lie between their neighbours (Ramer, Douglas and Peucker)."""
    while len(found := _evened(points, exact_ns)) > _PIECES:
        exact_ns *= 2
    return found


def _evened(points: Points, exact_ns: int) -> Points:
    if len(points) < 3:
        return list(points)
    ends = points[0], points[-1]
    far, number = max((abs(ahead - ahead_at(ends, at)), n) for n, (at, ahead) in enumerate(points[1:-1], 1))
    if far <= exact_ns:
        return list(ends)
    return [*_evened(points[: number + 1], exact_ns)[:-1], *_evened(points[number:], exact_ns)]


def ahead_at(points: Points, at_ns: int) -> int:
    """Return how much a clock is ahead at a time, as far as its points go; no points are no difference."""
    for (begin, one), (end, other) in pairwise(points):
        if at_ns <= end or (end, other) == points[-1]:
            return one + (other - one) * (at_ns - begin) // (end - begin)
    return points[0][1] if points else 0


def _spread(points: Points) -> int:
    every = [ahead for _, ahead in points]
    return max(every) - min(every)


def corrected(rows: "DataFrame", found: Iterable[Drift]) -> "DataFrame":
    """Give rows the times that clocks would have had without drift."""
    column = F.col("ts_ns")
    for one in found:
        right = F.col("ts_ns") - _column(one.points)
        column = F.when(F.col("gateway") == one.gateway, right).otherwise(column)
    return rows.withColumn("ts_ns", column)


def _column(points: Points) -> "Column":
    """Return how much a clock is ahead by a row's time, in whole ns."""
    pieces = [_piece(one, other) for one, other in pairwise(points)]
    column = pieces[-1]
    for (_, (end, _)), piece in list(zip(pairwise(points), pieces, strict=True))[-2::-1]:
        column = F.when(F.col("ts_ns") <= end, piece).otherwise(column)
    return column


def _piece(one: tuple[int, int], other: tuple[int, int]) -> "Column":
    rate = (other[1] - one[1]) / (other[0] - one[0])
    return F.lit(one[1]) + F.round((F.col("ts_ns") - one[0]).cast("double") * rate).cast("bigint")
