"""Clocks that were others after a restart: a machine came up with another time, or somebody set it while its
recorder did not run. Each run of a recorder is compared with those of other gateways."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.shared.clocks import Pair, least, least_of, offsets
from pipeline.analysis.shared.hops import wire_hops
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.steps import BACK_NS, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAST: Final = 10  # frames: fewer may have been late
COLUMNS: Final = ("key", "gateway", "boot", "hub", "bus", "dir", "first_ns")


def are_several(runs: Iterable[Run]) -> bool:
    """Return whether a gateway has more than one run."""
    return any(len(some) > 1 for some in _by_gateway(runs).values())


def pairs_of(rows: Iterable[tuple[int, str, int, str, str, int, int]]) -> list[Pair]:
    """Measure runs, in Python: of rows of frames without a fault, with `COLUMNS`. A run has a name for a
    gateway's."""
    return least_of(
        (key, _name(gateway, boot), hub, bus, way, at_ns) for key, gateway, boot, hub, bus, way, at_ns in rows
    )


def planned_pairs(good: "DataFrame") -> list[Pair]:
    """Measure runs by a plan, which does what `pairs_of` does."""
    run = F.concat_ws(" ", "gateway", F.col("boot").cast("string"))
    named = good.withColumns({"gateway": run, "segment": F.col("bus")})
    return [(*row[:2], *row[2:]) for row in least(wire_hops(named)).collect()]


def apart(pairs: Iterable[Pair], runs: Sequence[Run]) -> list[Step]:
    """Find the runs with another clock than the longest run of their gateway, each as a step at its
    beginning."""
    sure = [one for one in pairs if one[-1] >= _LEAST]
    found = offsets(sure, sorted(_name(one.gateway, one.boot) for one in runs), by_one_way=True)
    steps = list[Step]()
    for some in _by_gateway(runs).values():
        longest = max(some, key=lambda one: one.last_seq - one.first_seq)
        its = found[_name(longest.gateway, longest.boot)]
        for run in some:
            clock = found[_name(run.gateway, run.boot)]
            by_ns = clock.ahead_ns - its.ahead_ns
            if clock.against == its.against and abs(by_ns) > BACK_NS:
                steps.append(Step(run.gateway, run.boot, run.first_seq, run.first_ns - by_ns, run.first_ns))
    return sorted(steps)


def corrected(rows: "DataFrame", found: Iterable[Step]) -> "DataFrame":
    """Give rows of these runs the times of the longest run of their gateway."""
    column = F.col("ts_ns")
    for one in found:
        is_its = (F.col("gateway") == one.gateway) & (F.col("boot") == one.boot)
        column = F.when(is_its, F.col("ts_ns") - one.by_ns).otherwise(column)
    return rows.withColumn("ts_ns", column)


def _name(gateway: str, boot: int) -> str:
    return f"{gateway} {boot}"


def _by_gateway(runs: Iterable[Run]) -> Mapping[str, Sequence[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for one in runs:
        found[one.gateway].append(one)
    return found
