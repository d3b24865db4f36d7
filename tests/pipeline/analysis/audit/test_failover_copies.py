"""Two gateways stand in for each other at a CAN bus, each with a bus of its own; one of them dies."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit.findings import Audit, audit
from pipeline.analysis.failovers import failovers
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.stand_ins import FRAMES, STEP_MS, TAKEN_OVER, stood_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SAIL)
each_recorder = pytest.mark.parametrize(
    "has_rows", [False, True], ids=["an older recorder", "rows of what came in"]
)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


def faults(found: Audit) -> dict[tuple[str, str, str, str], int]:
    rows = found.summary.collect()
    return {(row.kind, row.stage, row.gateway, row.hub): row["count"] for row in rows}


ABSENT = ("not captured", "not recorded", "gw-a", "bus a")


@each_recorder
def test_what_a_stand_in_sends_again_is_the_frame_that_entered_before(
    spark: "SparkSession", has_rows: bool
) -> None:
    found = audit(stood_in(range(20, 30), has_rows=has_rows).rows(spark))
    [totals] = found.totals.collect()
    assert (totals.frames, totals.crossed) == (FRAMES, FRAMES)
    assert faults(found) == {ABSENT: FRAMES - TAKEN_OVER}


@each_recorder
def test_what_a_bus_heard_under_both_envelopes_is_doubled(spark: "SparkSession", has_rows: bool) -> None:
    """As it was first, such a frame has no fault."""
    found = audit(stood_in(range(20, 30), heard_twice=3, has_rows=has_rows).rows(spark))
    [totals] = found.totals.collect()
    assert totals.frames == FRAMES
    assert faults(found) == {
        ABSENT: FRAMES - TAKEN_OVER,
        ("duplicate", "in bridge", "gw-b", "bridge field"): 3,
    }


def test_a_bus_that_recorded_and_did_not_hear_lost_it(spark: "SparkSession") -> None:
    made = stood_in(range(0))
    made.missed(STEP_MS * FRAMES + 1000, "gw-a", 0)  # a recorder that is stopped ends with this row
    lost = ("lost", "on the way", "gw-a", "bus a")
    assert faults(audit(made.rows(spark))) == {lost: FRAMES - TAKEN_OVER}


def test_a_candidate_takes_over_at_another_bus_of_the_segment(spark: "SparkSession") -> None:
    [row] = failovers(stood_in(range(0)).rows(spark)).collect()
    assert (row.bus, row["from"], row.to) == ("bus a + bus b", "gw-a", "gw-b")
