"""Clocks that were others after a restart: a machine came up with another time, or somebody set it while its
recorder did not run. Each run of a recorder is compared with those of other gateways."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pipeline.analysis.shared.clocks import Pair, least, least_of, offsets
from pipeline.analysis.shared.hops import wire_hops
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.steps import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAME_NS: Final = 50_000_000
"""Clocks that are nearer are taken for one: what two recorders of a gateway saw of a frame is as near."""
_LEAST: Final = 10  # frames: fewer may have been late
COLUMNS: Final = ("key", "gateway", "boot", "hub", "bus", "dir", "first_ns")
_NAME: Final = "clock"


def are_several(runs: Iterable[Run]) -> bool:
    """Return whether a gateway has more than one run."""
    return any(len(some) > 1 for some in _by_gateway(runs).values())


def pairs_of(rows: Iterable[tuple[int, str, int, str, str, int, int]], runs: Iterable[Run]) -> list[Pair]:
    """Measure runs, in Python: of rows of frames without a fault, with `COLUMNS`. A run has a name."""
    names, wires = {(one.gateway, one.boot): _name(one) for one in runs}, list[Any]()
    seen: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    for key, gateway, boot, hub, bus, way, at_ns in rows:
        name = names.get((gateway, boot), "")
        wires.append((key, name, hub, bus, way, at_ns))
        its = seen[key, gateway]
        its[name] = min(at_ns, its.get(name, at_ns))
    return [*least_of(wires), *_within(seen.values())]


def _within(seen: Iterable[Mapping[str, int]]) -> Iterator[Pair]:
    """Measure the runs of one gateway by frames that several of its recorders saw, at one time."""
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for its in (some for some in seen if len(some) > 1):
        for one, other in permutations(its, 2):
            times[one, other].append(its[other] - its[one])
    return ((*names, min(found), len(found)) for names, found in times.items())


def planned_pairs(good: "DataFrame", runs: Iterable[Run]) -> list[Pair]:
    """Measure runs by plans, as `pairs_of` does. Parts of a run are told apart by their numbers."""
    named = good.withColumn(_NAME, _names(runs))
    wires = least(wire_hops(named.withColumns({"gateway": F.col(_NAME), "segment": F.col("bus")})))
    seen = named.groupBy("key", "gateway", _NAME).agg(F.min("ts_ns").alias("ts_ns"))
    one, other = (
        seen.withColumnsRenamed({_NAME: f"{end}_gateway", "ts_ns": f"{end}_ns"}) for end in ("from", "to")
    )
    both = one.join(other, ["key", "gateway"]).where("from_gateway <> to_gateway")
    found = wires.unionByName(least(both)).collect()
    return [(row.from_gateway, row.to_gateway, row.least_ns, row.n) for row in found]


def apart(pairs: Iterable[Pair], runs: Sequence[Run], least_ns: int, by_one_way: bool) -> list[Step]:
    """Find the runs whose clock differs by more than `least_ns` from that of the longest of their gateway:
    each is a step at its beginning."""
    sure = [one for one in pairs if one[-1] >= _LEAST]
    found = offsets(sure, sorted(map(_name, runs)), by_one_way)
    steps = list[Step]()
    for some in _by_gateway(runs).values():
        its = found[_name(max(some, key=lambda one: one.last_seq - one.first_seq))]
        for run in some:
            clock = found[_name(run)]
            by_ns = clock.ahead_ns - its.ahead_ns
            if clock.against == its.against and abs(by_ns) > least_ns:
                steps.append(Step(run.gateway, run.boot, run.first_seq, run.first_ns - by_ns, run.first_ns))
    return sorted(steps)


def corrected(rows: "DataFrame", found: Iterable[Step], runs: Iterable[Run]) -> "DataFrame":
    """Give rows of these runs the times of the longest run of their gateway."""
    by_ns = {(one.gateway, one.boot, one.seq): one.by_ns for one in found}
    column = F.col("ts_ns")
    for one in runs:
        if ns := by_ns.get((one.gateway, one.boot, one.first_seq)):
            column = F.when(_is_of(one), F.col("ts_ns") - ns).otherwise(column)
    return rows.withColumn("ts_ns", column)


def parts_of(runs: Iterable[Run], stepped: Iterable[Step]) -> list[Run]:
    """Divide runs where their clocks stepped."""
    found = list[Run]()
    for run in runs:
        its = [one for one in sorted(stepped) if (one.gateway, one.boot) == (run.gateway, run.boot)]
        starts = [(run.first_seq, run.first_ns), *((one.seq, one.at_ns) for one in its)]
        ends = [*((one.seq - 1, one.was_ns) for one in its), (run.last_seq, run.last_ns)]
        found += (
            run._replace(first_seq=first, first_ns=from_ns, last_seq=last, last_ns=to_ns)
            for (first, from_ns), (last, to_ns) in zip(starts, ends, strict=True)
        )
    return found


def _name(run: Run) -> str:
    return f"{run.gateway} {run.boot} {run.first_seq}"


def _names(runs: Iterable[Run]) -> "Column":
    name = F.lit("")
    for one in runs:
        name = F.when(_is_of(one), F.lit(_name(one))).otherwise(name)
    return name


def _is_of(run: Run) -> "Column":
    is_its = (F.col("gateway") == run.gateway) & (F.col("boot") == run.boot)
    return is_its & F.col("cap_seq").between(run.first_seq, run.last_seq)


def _by_gateway(runs: Iterable[Run]) -> Mapping[str, Sequence[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for one in runs:
        found[one.gateway].append(one)
    return found
