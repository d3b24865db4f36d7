"""A plant after takeovers, hand-made: the audit counts what a standby sent as what it is."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from capture.schema import Verdict
from pipeline.analysis.audit.findings import audit
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame
from tests.pipeline.analysis.standby import CAN, FRAMES, HALL, LINE, STEP_MS, TAKEN_OVER, Plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SAIL)


def judged(made: Capture, spark: "SparkSession") -> tuple[int, dict[Any, int]]:
    found = audit(made.rows(spark))
    counts = Counter[Any]()
    for row in found.summary.collect():
        counts[row.kind, row.segment] += row["count"]
    return found.totals.collect()[0].frames, dict(counts)


@pytest.mark.parametrize("equal", [0, 7], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("has_rows", [False, True], ids=["an older recorder", "rows of what came in"])
def test_what_a_standby_sent_is_no_fault(spark: "SparkSession", has_rows: bool, equal: int) -> None:
    assert judged(Plant(has_rows, equal).made, spark) == (FRAMES, {})


@pytest.mark.parametrize("has_rows", [False, True], ids=["an older recorder", "rows of what came in"])
def test_what_the_one_before_had_sent_too_is_doubled(spark: "SparkSession", has_rows: bool) -> None:
    """The standby stamps it with an envelope of its own, so that nobody behind knows that it is the same."""
    plant = Plant(has_rows)
    for number in range(3):
        content, at_ms = frame("motor", str(90 + number)), TAKEN_OVER.stop * STEP_MS - 4
        if has_rows:
            plant.made.seen(
                at_ms, "gw-b", "bridge field", CAN, RX, content, None, Verdict.STANDBY, (77, number)
            )
        plant.made.seen(at_ms, "gw-b", "bridge field", HALL, TX, content, envelope=(77, number))
        plant.made.seen(at_ms + 0.2, "gw-b", "bridge line", HALL, RX, content, envelope=(77, number))
        plant.made.seen(at_ms + 0.3, "gw-b", "bridge line", LINE, TX, content)
    assert judged(plant.made, spark) == (FRAMES, {("duplicate", HALL): 3, ("duplicate", LINE): 3})


def test_what_nobody_sent_is_lost(spark: "SparkSession") -> None:
    plant = Plant(has_rows=True)
    for number in range(4):
        plant.made.seen(
            number, "gw-a", "bridge field", CAN, RX, frame("motor", f"lost {number}"), 900 + number
        )
    frames, faults = judged(plant.made, spark)
    assert frames == FRAMES + 4
    assert faults == {("lost", HALL): 4, ("lost", LINE): 4}
