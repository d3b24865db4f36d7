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
FRAMES, STEP_MS, LOST_AT = 90, 100.0, (10, 70)
EVER = 1 << 62


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


def bridge(**side: Any) -> dict[str, Any]:
    sides = [{"segment": "bus a"}, {"segment": "can", **side}]
    return {"bridge a": {"gateways": ["gw-a"], "pattern": [], "sides": sides}}


def refiltered(
    topologies: list[dict[str, Any]], has_filter: tuple[bool, ...], carried: int = FRAMES
) -> Capture:
    """Let a bridge that is killed after `carried` frames carry those of a door and a motor to CAN. In some
    parts of the time a filter holds those of the door back. Two frames of the motor are lost: `LOST_AT`."""
    made = Capture()
    for number, hubs in enumerate(topologies):
        made.topology("gw-a", hubs, STEP_MS * number * FRAMES / len(has_filter))
    for number in range(FRAMES):
        at, name = STEP_MS * number, ("motor", "door")[number % 2]
        content = frame(name, str(number))
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        if number >= carried:
            continue
        made.seen(at + 1, "gw-a", "bridge a", "bus a", RX, content)
        is_kept = name == "door" and has_filter[number * len(has_filter) // FRAMES]
        if not is_kept and number not in LOST_AT:
            made.seen(at + 2, "gw-a", "bridge a", "can", TX, content)
    return made


CHANGES = {
    "it came": (False, True),
    "it went": (True, False),
    "it came and went": (False, True, False),
    "it went and came back": (True, False, True),
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("has_filter", CHANGES.values(), ids=CHANGES)
def test_what_a_filter_of_the_time_held_back_is_not_lost(
    spark: "SparkSession", has_filter: tuple[bool, ...]
) -> None:
    told = [bridge(deny_out=[list(DOOR)]) if one else bridge() for one in has_filter]
    found = audit(refiltered(told, has_filter).rows(spark)).summary.collect()
    assert [(one.kind, one.segment, one["count"]) for one in found] == [("lost", "can", len(LOST_AT))]


@pytest.mark.engines(SAIL)
def test_without_the_filter_in_a_topology_it_is_lost(spark: "SparkSession") -> None:
    found = audit(refiltered([bridge()], (False, True)).rows(spark)).summary.collect()
    assert sum(one["count"] for one in found) > len(LOST_AT)


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("first", ["the bus", "the bridge"])
def test_what_another_recorder_of_the_gateway_does_not_tell_of_has_not_gone(
    spark: "SparkSession", first: str
) -> None:
    """A bus and a bridge are recorded each for itself, and the bridge is killed: its frames are lost."""
    made = refiltered([], (False,), carried=50)
    apart = [{"bus a": {"gateways": ["gw-a"]}}, bridge()]
    for boot, hubs in enumerate(apart if first == "the bus" else apart[::-1]):
        made.topology("gw-a", hubs, 1000.0 * boot, boot)
    found = audit(made.rows(spark)).summary.collect()
    assert {(one.kind, one.segment) for one in found} == {("lost", "can")}
    assert sum(one["count"] for one in found) == len(LOST_AT) - 1 + FRAMES - 50


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
