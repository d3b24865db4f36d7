"""What a filter held back is no loss, although frames of its kind passed before it came or after it went."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.wire.pattern import Pattern
from pipeline.analysis.audit.filtered import kept_out, spells
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.shared.inventory import Version
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOOR = tuple(Pattern("door"))
FRAMES, STEP_MS, CHANGE_MS, LOST_AT = 90, 100.0, 5000.0, (10, 70)
EVER = 1 << 62


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


def bridge(**side: Any) -> dict[str, Any]:
    sides = [{"segment": "bus a"}, {"segment": "can", **side}]
    return {"bridge a": {"gateways": ["gw-a"], "pattern": [], "sides": sides}}


def refiltered(topologies: list[dict[str, Any]], has_filter: tuple[bool, bool]) -> Capture:
    """Carry frames of a door and a motor to CAN. From the change on another filter holds those of the door
    back, or none does. A frame of the motor is lost before the change, and one after it."""
    made = Capture()
    for number, hubs in enumerate(topologies):
        made.topology("gw-a", hubs, CHANGE_MS * number)
    for number in range(FRAMES):
        at, name = STEP_MS * number, ("motor", "door")[number % 2]
        content = frame(name, str(number))
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 1, "gw-a", "bridge a", "bus a", RX, content)
        is_kept = name == "door" and has_filter[at >= CHANGE_MS]
        if not is_kept and number not in LOST_AT:
            made.seen(at + 2, "gw-a", "bridge a", "can", TX, content)
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("has_filter", [(False, True), (True, False)], ids=["it came", "it went"])
def test_what_a_filter_of_the_time_held_back_is_not_lost(
    spark: "SparkSession", has_filter: tuple[bool, bool]
) -> None:
    told = [bridge(deny_out=[list(DOOR)]) if one else bridge() for one in has_filter]
    found = audit(refiltered(told, has_filter).rows(spark)).summary.collect()
    assert [(one.kind, one.segment, one["count"]) for one in found] == [("lost", "can", len(LOST_AT))]


@pytest.mark.engines(SAIL)
def test_without_the_filter_in_a_topology_it_is_lost(spark: "SparkSession") -> None:
    found = audit(refiltered([bridge()], (False, True)).rows(spark)).summary.collect()
    assert sum(one["count"] for one in found) > len(LOST_AT)


def test_times_are_divided_where_a_gateway_changed_its_topology() -> None:
    one, other = bridge(), bridge(deny_out=[list(DOOR)])
    told = [Version("a", 10, one), Version("a", 20, one), Version("a", 50, other), Version("b", 70, one)]
    assert spells(told, {"a": 5}) == [(-EVER, 45, [one, one]), (45, EVER, [other, one])]
    assert spells(told[:2], {}) == [(-EVER, EVER, [one])]
    assert spells([], {}) == [(-EVER, EVER, [])]


def test_a_segment_is_kept_out_where_no_way_leads_there() -> None:
    one, other = bridge(), bridge(deny_out=[list(DOOR)])
    told = spells([Version("a", 10, one), Version("a", 50, other)], {})
    lost = [("bus a", 1, {"can"}), ("bus a", 0, {"can"})]
    assert list(kept_out(lost, told, {}, (DOOR,))) == [("bus a", 1, "can", 50, EVER)]
    beside = {"bridge b": frozenset({("bus a", "can")})}
    assert list(kept_out(lost, told, beside, (DOOR,))) == []
    assert list(kept_out(lost, told[:1], {}, (DOOR,))) == []
