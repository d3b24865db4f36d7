"""Labels of faults: what a bridge took back before it left is not doubled."""

import pytest

pytest.importorskip("pyspark")

from capture.schema import Direction
from pipeline.analysis.audit.labels import SUMMARY, without_taken_back


def row(kind: str, segment: str, hub: str, count: int) -> tuple[object, ...]:
    return (kind, "in bridge", segment, "gw-b", hub, "content", count, 0, 9)


@pytest.mark.parametrize(("fenced", "left"), [(0, 5), (3, 2), (5, 0), (9, 0)])
def test_copies_that_were_taken_back_out_of_a_queue_are_not_doubled(fenced: int, left: int) -> None:
    """The one before had handed them to a slow line, and its lease ended before they left."""
    ledger = [{"hub": "bridge x", "bus": "uart", "dir": Direction.TX, "reason": "fenced", "count": fenced}]
    others = [row("duplicate", "bus", "bridge x", 4), row("lost", "uart", "bridge x", 7)]
    found = without_taken_back([row("duplicate", "uart", "bridge x", 5), *others], ledger)
    counts = [dict(zip(SUMMARY, one, strict=True))["count"] for one in found]
    assert counts == [*([left] if left else []), 4, 7]
