"""Thinning: frames that a side did not take because of `unchanged` or `limits`. They are no loss.

Which frames these were no capture says, but ledgers count them: so they are compared by counts. Of what is
missing behind a bridge, as many are no fault as its sides refused. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from capture.schema import Direction, Kind
from pipeline.analysis.audit.explain import AT_SENDER, LOST, NO_BRIDGE, ON_THE_WAY, UPSTREAM
from pipeline.analysis.audit.ways import Ways, reached

if TYPE_CHECKING:
    from pyspark.sql import Row

REASONS: Final = ("unchanged", "limit", "no name")
_STAGES: Final = (NO_BRIDGE, AT_SENDER, ON_THE_WAY, UPSTREAM)


def refused(taken: "Iterable[Row]") -> Counter[str]:
    """Count what the sides of each bridge refused as it came in, by the name of the bridge."""
    found = Counter[str]()
    for row in taken:
        if row.kind == Kind.LEDGER and row.dir == Direction.RX and row.reason in REASONS:
            found[row.hub] += row["count"]
    return found


def hubs(taken: "Iterable[Row]", segments: Sequence[str]) -> dict[int, int]:
    """Count the hubs that received frames from each segment, by its number."""
    found = {(row.gateway, row.hub, row.bus) for row in taken if _is_frame_in(row)}
    return Counter(segments.index(bus) for _, _, bus in found)


def _is_frame_in(row: "Row") -> bool:
    return bool(row.kind == Kind.FRAME and row.dir == Direction.RX)


def without(
    summary: Iterable[tuple[Any, ...]], names: Mapping[str, type], refused: Mapping[str, int], ways: Ways
) -> list[tuple[Any, ...]]:
    """Take out of the rows of a summary, whose columns have these `names`, as many losses on each segment as
    the bridges refused that lead there."""
    budget, kept = Counter[str](), list[tuple[Any, ...]]()
    for hub, count in refused.items():
        for segment in {other for _, one in ways.get(hub, ()) for other in reached(one, ways)}:
            budget[segment] += count
    for row in (dict(zip(names, one, strict=True)) for one in summary):
        is_asked = row["kind"] == LOST and row["stage"] in _STAGES
        taken = min(row["count"], budget[row["segment"]]) if is_asked else 0
        budget[row["segment"]] -= taken
        if row["count"] > taken:
            kept.append((*{**row, "count": row["count"] - taken}.values(),))
    return kept
