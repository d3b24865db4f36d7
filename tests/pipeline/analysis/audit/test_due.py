"""What topologies let pass is due, even if no frame of its kind passed; what they may hold back is not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.wire.pattern import Pattern
from pipeline.analysis.audit.due import always
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.shared.filters import NUMBERED_MOST
from pipeline.analysis.shared.inventory import Version
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame
from tests.pipeline.analysis.judged import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES = 60
NAMES = ("door", "motor/speed", "motor/temp")
DOOR, MOTOR, WINDOW = ([list(Pattern(name))] for name in ("door", "motor", "window"))
WAYS = frozenset({("bus a", "can"), ("can", "bus a")})


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


def bridge(pattern: Any = (), **side: Any) -> dict[str, Any]:
    sides = [{"segment": "bus a"}, {"segment": "can", **side}]
    return {"bridge a": {"gateways": ["gw-a"], "pattern": list(pattern), "sides": sides}}


def carried(lost: tuple[str, ...]) -> Capture:
    """Carry frames from a bus to CAN, one every 100 ms, but for those of some names."""
    made = Capture()
    for number in range(FRAMES):
        name, at = NAMES[number % 3], 100.0 * number
        content = frame(name, str(number))
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 1, "gw-a", "bridge a", "bus a", RX, content)
        if name not in lost:
            made.seen(at + 2, "gw-a", "bridge a", "can", TX, content)
    return made


TOLD: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "no filter": ([bridge()], True),
    "a filter that lets it in": ([bridge(allow=[*MOTOR, *DOOR])], True),
    "another is kept out": ([bridge(deny_out=WINDOW)], True),
    "it is kept out": ([bridge(deny_out=DOOR)], False),
    "all are kept out": ([bridge(deny_in=[[]], deny_out=[[]])], False),
    "others are let in": ([bridge(allow_out=MOTOR)], False),
    "the bridge carries others": ([bridge(MOTOR[0])], False),
    "it was kept out at times": ([bridge(), bridge(deny_out=DOOR)], False),
    "the bridge came later": ([{}, bridge()], False),
    "no topology": ([], False),
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("told", TOLD)
def test_frames_of_which_none_arrived_are_lost_if_every_topology_lets_them_pass(
    spark: "SparkSession", told: str
) -> None:
    made, (topologies, is_due) = carried(("door",)), TOLD[told]
    for number, hubs in enumerate(topologies):
        made.topology("gw-a", hubs, 3000.0 * number)
    found = audit(made.rows(spark)).summary.collect()
    faults = [(one.kind, one.stage, one.segment, one.hub, one["count"]) for one in found]
    assert faults == [("lost", "in bridge", "can", "bridge a", FRAMES // 3)] * is_due


@pytest.mark.engines(SAIL)
def test_it_is_due_if_buses_and_bridges_are_recorded_apart(spark: "SparkSession") -> None:
    made = carried(("door",))
    made.topology("gw-a", {"bus a": {"gateways": ["gw-a"]}}, 0.0, 4)
    made.topology("gw-a", bridge(), 1.0, 5)
    assert [one["count"] for one in audit(made.rows(spark)).summary.collect()] == [FRAMES // 3]


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("reason", ["no peer", "no device"])
def test_nothing_is_due_at_a_link_that_had_nobody_for_a_while(spark: "SparkSession", reason: str) -> None:
    made = carried(("door",))
    made.dropped(500.0, "gw-a", "bridge a", "can", reason)
    made.topology("gw-a", bridge())
    assert audit(made.rows(spark)).summary.collect() == []


@pytest.mark.engines(SAIL)
def test_nothing_is_due_where_a_bridge_carried_nothing(spark: "SparkSession") -> None:
    made = carried(NAMES)
    made.seen(0.0, "gw-a", "bridge a", "can", RX, frame("other", "0"))
    made.topology("gw-a", bridge())
    found = answered(made, spark)
    assert found.color == "amber"
    assert found.text.startswith(f"{FRAMES + 1} frames entered; none was seen on another segment")


def versions(*told: tuple[str, dict[str, Any]]) -> list[Version]:
    return [Version(gateway, number, hubs) for number, (gateway, hubs) in enumerate(told)]


def test_ways_are_sure_if_all_gateways_and_times_agree() -> None:
    def found(*told: tuple[str, dict[str, Any]]) -> object:
        return always(versions(*told), (tuple(DOOR[0]),), 1)

    both = bridge()
    assert found(("a", both), ("b", both), ("c", {})) == {"bridge a": WAYS}
    assert found(("a", both), ("b", bridge(deny_out=DOOR))) == {"bridge a": {("can", "bus a")}}
    assert found(("a", both), ("a", {})) == {"bridge a": frozenset()}
    assert found(("a", both), ("a", {"bus a": {}}), ("b", both)) == {"bridge a": frozenset()}


def test_a_pattern_without_a_number_makes_no_way_sure() -> None:
    many = tuple((number,) for number in range(NUMBERED_MOST + 1))
    last = [list(many[-1])]
    for side in ({"allow_out": last}, {"deny_out": last}):
        assert always(versions(("a", bridge(**side))), many, 0)["bridge a"] == {("can", "bus a")}
