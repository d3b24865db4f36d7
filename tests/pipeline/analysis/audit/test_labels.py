"""Labels of faults: what a bridge took back before it left is not doubled."""

import pytest

pytest.importorskip("pyspark")

from capture.schema import Direction
from pipeline.analysis.audit.labels import SUMMARY, with_nobody, without_taken_back


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


@pytest.mark.parametrize(
    ("no_peer", "segment", "told"),
    [
        (0, "tcp", [("lost", 7)]),
        (3, "tcp", [("lost", 4), ("nobody", 3)]),
        (9, "tcp", [("nobody", 7)]),
        (9, "uart", [("lost", 7)]),  # which opens a device: that nobody is there is trouble
    ],
)
def test_copies_for_a_listener_that_nobody_has_dialled_are_nobody_s_fault(
    no_peer: int, segment: str, told: list[tuple[str, int]]
) -> None:
    place = {"gateway": "gw-b", "hub": "bridge x", "bus": segment, "dir": Direction.TX}
    ledger = [{**place, "reason": "no peer", "count": no_peer}, {**place, "reason": "aged out", "count": 7}]
    rows = [row("lost", segment, "bridge x", 7), row("duplicate", segment, "bridge x", 1)]
    found = [dict(zip(SUMMARY, one, strict=True)) for one in with_nobody(rows, ledger, {("bridge x", "tcp")})]
    assert [(one["kind"], one["count"]) for one in found] == [*told, ("duplicate", 1)]
