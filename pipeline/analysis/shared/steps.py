"""The steps of gateways' clocks: a time server or somebody set one while its recorder ran.

Rows of a run are numbered in the order in which they were recorded. A clock that goes back shows in that
order. One that goes forward looks like silence there: that it was none, other gateways show, whose equal
frames were then as much earlier as before.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.analysis.shared.frames import content, frames, local_table, received
from pipeline.analysis.shared.inventory import Run

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BACK_NS: Final = 1_000_000_000
AHEAD_NS: Final = 2_000_000_000
"""Less is not looked for: silence is common."""
_BIN: Final = 64  # rows
_BINS_MOST: Final = 1000
_JUMPS_MOST: Final = 20
_RUN: Final = ("gateway", "boot")
Near = tuple[str, int, int, int]
"""A run (gateway and boot), and two of its rows that follow each other, by number."""
BinPlace = tuple[str, int, int, int]
"""A run, a bin of rows, and the number by which it belongs together with the bin before it."""
Times = Mapping[int, Sequence[int]]
"""The times when frames passed, by their contents."""
_FROM_NS, _TO_NS, _AROUND_NS = 1_000_000_000, 4_000_000_000, 500_000_000
_FIT_NS: Final = 60_000_000_000
_WIDTH_NS: Final = 20_000_000
_SURE: Final = 0.3  # of a gateway's frames have an equal one at the same distance
_CLEARER: Final = 1.5
_LEAST: Final = 10  # frames: fewer may agree by chance


class Step(NamedTuple):
    """A step of a gateway's clock by `by_ns`, before the row `seq` of a run. `was_ns` and `at_ns` are the
    times of the row before and of that one, by the clock. `is_away`: others agree with the clock as it was;
    None if nobody knows."""

    gateway: str
    boot: int
    seq: int
    was_ns: int
    at_ns: int
    is_away: bool | None = None

    @property
    def by_ns(self) -> int:
        return self.at_ns - self.was_ns


class Steps(NamedTuple):
    """All steps that were found, in the order of rows.

    `ahead_ns` says for each run, by gateway and boot, how far the clock that is taken as right is ahead
    of the one before the run's first step.
    """

    found: Sequence[Step]
    ahead_ns: Mapping[tuple[str, int], int]

    def of(self, gateway: str, boot: int) -> list[Step]:
        """Return the steps of a run, in the order of rows."""
        return [one for one in self.found if (one.gateway, one.boot) == (gateway, boot)]

    def by_now(self, one: Step) -> Step:
        """Return a jump with the times that its rows have when these steps are corrected."""
        some = self.of(one.gateway, one.boot)
        if not some:
            return one
        ns = self.ahead_ns[one.gateway, one.boot] - sum(each.by_ns for each in some if each.seq <= one.seq)
        return one._replace(was_ns=one.was_ns + ns, at_ns=one.at_ns + ns)

    def also(self, some: Sequence[Step], runs: Sequence[Run]) -> "Steps":
        """Return these steps and `some` more of one run."""
        run, ahead_ns = (some[0].gateway, some[0].boot), dict(self.ahead_ns)
        if run in ahead_ns:
            ahead_ns[run] += sum(one.by_ns for one in some if one.is_away is False)
        else:
            ahead_ns[run] = _reference(some, runs)
        return Steps(sorted([*self.found, *some]), ahead_ns)


def steps(rows: "DataFrame", runs: Sequence[Run], near: Sequence[Near] | None = None) -> Steps:
    """Find the steps. `near` says between which rows there may be one, else a pass over narrow columns does.

    Two more passes if there are such places. Each further step of a clock, and that of another one, is looked
    for when the steps before are corrected, by one more pass: a clock that stepped twice agrees with no other
    one near its second step.
    """
    jumps = list(_jumps(rows, _bins(rows) if near is None else _bins_of(near)))
    back = [one for one in jumps if one.by_ns < 0]
    ahead = sorted((one for one in jumps if one.by_ns > 0), key=lambda one: -one.by_ns)[:_JUMPS_MOST]
    waiting, steps = sorted([*back[:_JUMPS_MOST], *ahead]), Steps((), {})
    while some := _sure(_judged(corrected(rows, steps), waiting, steps), steps):
        steps = steps.also(some, runs)
        waiting = [one for one in waiting if one[:3] not in {one[:3] for one in some}]
    return steps


def _sure(judged: Iterable[Step], steps: Steps) -> list[Step]:
    """Select jumps that are steps, of one run: all at once of one without a step before, else the next one.

    That a clock went back is sure by itself; it waits for those that others tell of.
    """
    some = sorted(judged)
    first = next((one for one in some if one.is_away is not None), None)
    first = first or next((one for one in some if one.by_ns < 0), None)
    if first is None or steps.of(first.gateway, first.boot):
        return [first] if first else []
    its = (one for one in some if one[:2] == first[:2])
    return [one for one in its if one.by_ns < 0 or one.is_away is not None]


def _numbers(rows: "DataFrame") -> "DataFrame":
    """Select the frames with their numbers.

    Other rows are not looked at: counts are about a time before, and so is what came by CAN, which has the
    time of the kernel: a gateway that was late reads frames of seconds ago.
    """
    its = frames(rows).where(_timed_when_seen())
    return its.select(*_RUN, F.expr(f"cap_seq div {_BIN}").alias("bin"), "cap_seq", "ts_ns")


def _bins(rows: "DataFrame") -> set[BinPlace]:
    """Find the bins of rows near which the time between two may be that of a step."""
    numbers = _numbers(rows)
    its = F.min("ts_ns").alias("from_ns"), F.max("ts_ns").alias("to_ns")
    in_order = Window.partitionBy(*_RUN).orderBy("bin")
    before = {"was_ns": F.lag("to_ns").over(in_order), "before": F.lag("bin").over(in_order)}
    bins = numbers.groupBy(*_RUN, "bin").agg(*its).withColumns(before)
    is_back = f"from_ns < was_ns - {BACK_NS}"
    is_ahead = f"from_ns > was_ns + {AHEAD_NS} OR to_ns > from_ns + {BACK_NS}"
    some = bins.where(f"{is_back} OR {is_ahead}").orderBy("from_ns", *_RUN, "bin").limit(_BINS_MOST)
    both = ((row, number) for row in some.collect() for number in (row.before, row.bin))
    return {(*row[:2], number, row.bin) for row, number in both if number is not None}


def _bins_of(near: Sequence[Near]) -> set[BinPlace]:
    return {
        (gateway, boot, number // _BIN, seq // _BIN)
        for gateway, boot, before, seq in near[:_BINS_MOST]
        for number in (before, seq)
    }


def _jumps(rows: "DataFrame", places: Collection[BinPlace]) -> Iterator[Step]:
    """Yield where the time between two frames that follow each other is that of a step."""
    if not places:
        return
    names = {"gateway": str, "boot": int, "bin": int, "its": int}
    near = F.broadcast(local_table(rows.sparkSession, names, sorted(places)))
    wanted = _numbers(rows).join(near, [*_RUN, "bin"]).select(*_RUN, "its", "cap_seq", "ts_ns").collect()
    found = set[Step]()
    for one, other in pairwise(sorted(map(tuple, wanted))):
        by_ns = other[-1] - one[-1]
        if one[:3] == other[:3] and (by_ns < -BACK_NS or by_ns > AHEAD_NS):
            gateway, boot, _, seq, at_ns = other
            found.add(Step(gateway, boot, seq, one[-1], at_ns))
    yield from sorted(found, key=lambda one: one[:3])


def _timed_when_seen() -> "Column":
    """Select rows with the time at which they were recorded."""
    return ~(received() & F.col("bus").startswith("can "))


def _judged(rows: "DataFrame", waiting: Sequence[Step], steps: Steps) -> Iterator[Step]:
    """Yield the jumps, with what frames that passed near them say: `rows` have the times of `steps`."""
    if not waiting:
        return
    jumps = [steps.by_now(one) for one in waiting]
    windows = [(n, one.gateway, *bounds) for n, one in enumerate(jumps) for bounds in _windows(one)]
    names = {"jump": int, "its": str, "from_ns": int, "to_ns": int}
    table = F.broadcast(local_table(rows.sparkSession, names, windows))
    passed = frames(rows).select("gateway", "ts_ns", content().alias("content"))
    near = passed.join(table, F.expr("ts_ns BETWEEN from_ns AND to_ns"))
    found = near.select("jump", F.expr("gateway = its").alias("own"), "content", "ts_ns").distinct()
    seen: dict[tuple[int, bool], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in found.collect():
        seen[row.jump, row.own][row.content].append(row.ts_ns)
    for n, one in enumerate(jumps):
        yield waiting[n]._replace(is_away=is_away(seen[n, True], seen[n, False], one))


def _windows(one: Step) -> Iterator[tuple[int, int]]:
    """Yield when frames passed soon before and after a jump, and when equal ones did elsewhere if it was a
    step."""
    before = one.was_ns - _TO_NS - _AROUND_NS, one.was_ns - _FROM_NS + _AROUND_NS
    after = one.at_ns + _FROM_NS - _AROUND_NS, one.at_ns + _TO_NS + _AROUND_NS
    for (begin, end), by_ns in ((before, one.by_ns), (after, -one.by_ns)):
        yield begin, end
        yield begin + by_ns, end + by_ns


def is_away(own: Times, others: Times, one: Step) -> bool | None:
    """Tell by frames near a jump, by content, whether their equal ones elsewhere were at the same time before
    it and at another one after it (True), or the other way round (False). None if neither: it was a silence,
    or nobody can tell."""
    before = _within(own, one.was_ns - _TO_NS, one.was_ns - _FROM_NS)
    after = _within(own, one.at_ns + _FROM_NS, one.at_ns + _TO_NS)
    same, other = _agreeing(after, others, 0), _agreeing(after, others, one.by_ns)
    if other >= _LEAST and other > max(_SURE * _count(after), _CLEARER * same):
        return True
    same, other = _agreeing(before, others, 0), _agreeing(before, others, -one.by_ns)
    return False if other >= _LEAST and other > max(_SURE * _count(before), _CLEARER * same) else None


def _within(times: Times, begin_ns: int, end_ns: int) -> Times:
    return {key: [t for t in some if begin_ns <= t <= end_ns] for key, some in times.items()}


def _count(times: Times) -> int:
    return sum(map(len, times.values()))


def _agreeing(own: Times, others: Times, shift_ns: int) -> int:
    """Count the frames that have an equal one at one and the same distance, about `shift_ns`."""
    apart = [
        t - other - shift_ns
        for key, times in own.items() for t in times for other in others.get(key, ())
        if abs(t - other - shift_ns) <= _AROUND_NS
    ]  # fmt: skip
    return max(Counter(one // _WIDTH_NS for one in apart).values(), default=0)


def corrected(rows: "DataFrame", steps: Steps) -> "DataFrame":
    """Give rows the times that clocks would have had without their steps: by the clock of the longest piece
    of each run that fits the times of other gateways."""
    column = F.col("ts_ns")
    for (gateway, boot), ahead_ns in steps.ahead_ns.items():
        is_its = (F.col("gateway") == gateway) & (F.col("boot") == boot)
        shift = _shift(steps.of(gateway, boot), ahead_ns)
        column = F.when(is_its, F.col("ts_ns") + shift).otherwise(column)
    return rows.withColumn("ts_ns", column) if steps.found else rows


def _shift(some: Sequence[Step], ahead_ns: int) -> "Column":
    """Return what to add to the times of a run, by the number of a row: `ahead_ns` before the first step."""
    ahead = [ahead_ns - sum(one.by_ns for one in some[: n + 1]) for n in range(len(some))]
    begun = [F.col("cap_seq") >= one.seq for one in some]
    shift = F.when(begun[-1], F.lit(ahead[-1]))
    for is_after, ns in list(zip(begun, ahead, strict=True))[-2::-1]:
        shift = shift.when(is_after, F.lit(ns))
    return shift.otherwise(F.lit(ahead_ns))


def _reference(some: Sequence[Step], runs: Sequence[Run]) -> int:
    """Return how much the clock of the piece that is taken as right is ahead of the first piece's."""
    (last_seq,) = [one.last_seq for one in runs if (one.gateway, one.boot) == some[0][:2]]
    bounds = [0, *(one.seq for one in some), last_seq]
    points = [[], *([one.at_ns] for one in some)]
    for number, one in enumerate(some):
        points[number].append(one.was_ns)
    others = [one for one in runs if one.gateway != some[0].gateway]
    begin = min((one.first_ns for one in others), default=0) - _FIT_NS
    end = max((one.last_ns for one in others), default=0) + _FIT_NS
    fits = [all(begin <= point <= end for point in its) for its in points]
    votes = Counter(n + (not one.is_away) for n, one in enumerate(some) if one.is_away is not None)
    best = max(range(len(points)), key=lambda n: (votes[n], fits[n], bounds[n + 1] - bounds[n]))
    return sum(one.by_ns for one in some[:best])
