"""Findings agree with the summary where ledgers say that nothing was lost or doubled."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit import few
from pipeline.analysis.audit.findings import audit
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES, MISSED, TWICE = 90, range(20, 32), range(60, 67)
HUBS = {
    "bridge x": {
        "gateways": ["gw-a"],
        "sides": [{"segment": "bus hall"}, {"segment": "tcp", "listens": True}],
    }
}


def carried(no_peer: int, fenced: int, refused: int = 0) -> Capture:
    """A bridge from the hall to a side where it listens: nobody was there for some frames, and of others its
    ledger says that a second copy was taken back."""
    made = Capture()
    made.topology("gw-a", HUBS)
    for number in range(FRAMES):
        content, at = frame("motor", str(number)), 10.0 * number
        made.seen(at, "gw-a", "bus hall", "bus hall", RX, content, number)
        if not (refused and number in MISSED):
            made.seen(at + 1, "gw-a", "bridge x", "bus hall", RX, content, number)
        for copy in range((number not in MISSED) + (number in TWICE)):
            made.seen(at + 2 + copy, "gw-a", "bridge x", "tcp", TX, content, number)
    for reason, count in (("no peer", no_peer), ("fenced", fenced)):
        made.dropped(10.0 * FRAMES, "gw-a", "bridge x", "tcp", reason, count)
    made.dropped(10.0 * FRAMES, "gw-a", "bridge x", "bus hall", "limit", refused, RX)
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("is_few", [True, False])
@pytest.mark.parametrize(
    ("ledger", "kinds", "summary"),
    [
        ((0, 0), {"lost": 12, "duplicate": 7}, {"lost": 12, "duplicate": 7}),
        ((12, 7), {"nobody": 12}, {"nobody": 12}),
        ((5, 3), {"lost": 12, "duplicate": 7}, {"lost": 7, "nobody": 5, "duplicate": 4}),
        ((0, 7, 12), {}, {}),
    ],
    ids=["faults", "none", "some", "refused"],
)
def test_what_ledgers_explain_is_no_fault_of_a_single_frame(
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    ledger: tuple[int, ...],
    kinds: dict[str, int],
    summary: dict[str, int],
    is_few: bool,
) -> None:
    if not is_few:
        monkeypatch.setattr(few, "MOST", 0)
    found = audit(carried(*ledger).rows(spark))
    counts = Counter[str]()
    for row in found.summary.collect():
        counts[row.kind] += row["count"]
    assert counts == summary
    assert Counter(row.kind for row in found.findings.collect()) == kinds
