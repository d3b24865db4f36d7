"""Answers that were wrong once, each in the smallest capture that shows it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.wire.pattern import Pattern
from pipeline.analysis import rates
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.audit.gaps import paused
from pipeline.analysis.failovers import failovers
from pipeline.analysis.last import last
from pipeline.analysis.shared import inventory, places, sums
from pipeline.analysis.shared.expected import SEVERAL
from pipeline.analysis.shared.frames import local_table
from pipeline.cache import release
from pipeline.engine.choice import SAIL, SPARK
from tests.pipeline.analysis.hand_made import MS, RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engines(SAIL)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Each test lets go of what it kept: there are many."""
    yield
    release()


def faults(rows: "DataFrame") -> list[tuple[str, str, str, int]]:
    return [(one.kind, one.stage, one.segment, one["count"]) for one in audit(rows).summary.collect()]


def handed_over(equal: int) -> Capture:
    """Two candidates of one bridge carry frames from CAN onto a bus: gw-a first, then gw-b.

    Ten different frames go by each of them. Then there are equal ones, with the takeover in their middle.
    """
    made = Capture()
    for number in range(20):
        gateway = "gw-a" if number < 10 else "gw-b"
        carry(made, 100 * number, gateway, frame("motor/speed", str(number)))
    for number in range(equal):
        gateway = "gw-a" if number < equal // 2 else "gw-b"
        carry(made, 10_000 + 100 * number, gateway, frame("motor/speed", "same"))
    return made


def carry(made: Capture, ms: float, gateway: str, content: bytes) -> None:
    made.seen(ms, gateway, "bridge field", "can", RX, content)
    made.seen(ms + 1, gateway, "bridge field", "bus hall", TX, content)
    made.seen(ms + 2, "gw-c", "bus hall", "bus hall", RX, content)


def test_equal_readings_around_a_takeover_are_no_duplicates(spark: "SparkSession") -> None:
    rows = handed_over(10).rows(spark)
    assert faults(rows) == []
    assert [row.frames for row in audit(rows).totals.collect()] == [30]


def test_of_equal_readings_around_a_takeover_a_loss_is_found(spark: "SparkSession") -> None:
    made = handed_over(10)
    made.seen(10_950, "gw-b", "bridge field", "can", RX, frame("motor/speed", "same"))
    assert faults(made.rows(spark)) == [("lost", "in bridge", "bus hall", 1)]


def test_what_a_segment_brought_is_counted_over_a_takeover(spark: "SparkSession") -> None:
    found = rates.rates(handed_over(10).rows(spark), seconds=1000.0).where("bus = 'can'").collect()
    assert [(row.brought, row.put) for row in found] == [(30, 0)]


def test_what_was_lost_in_two_pauses_is_told_once(spark: "SparkSession") -> None:
    """Three episodes of equal frames last for a second in which there are three pauses."""
    at = {"name": str, "from_at": int, "to_at": int}
    lost = local_table(
        spark, {"key": int, "episode": int, **at}, [(n, 0, "bus hall", 0, 1000 * MS) for n in range(3)]
    )
    spell = {"name": str, "from_ns": int, "to_ns": int, "last": str}
    times = [("bus hall", n * MS, (n + 110) * MS, "gw-a") for n in (0, 300, 600, 5000)]
    found = paused(lost, local_table(spark, spell, times)).collect()
    assert [(row.key, row.paused) for row in sorted(found)] == [(n, ["bus hall"]) for n in range(3)]
    assert paused(lost.limit(2), local_table(spark, spell, times)).collect() == []


@pytest.mark.engines(SPARK, SAIL)
def test_sums_of_equal_frames_are_few_however_often_each_is_repeated(spark: "SparkSession") -> None:
    made = handed_over(10)
    for times in range(2, 12):
        for number in range(times):
            carry(made, 1000 * number, "gw-b", frame("oven", f"repeated {times}"))
    rows = made.rows(spark)
    at = places.as_places(inventory.take(rows))
    found = sums.signatures(sums.sums(sums.keyed(rows, at), at), at).collect()
    assert {(row.rows == SEVERAL, row["count"]) for row in found} == {(False, 20), (True, 10), (True, 1)}
    assert faults(rows) == []


def enveloped(made: Capture, number: int, late_ms: float = 0, onto: tuple[str, ...] = ("one", "two")) -> None:
    """Carry an enveloped frame from bus zero onto two others; onto bus one perhaps late."""
    content, ms = frame("door", "open"), 100.0 * number
    made.seen(ms, "gw", "bus zero", "bus zero", RX, content, number)
    made.seen(ms + 1, "gw", "bridge b", "bus zero", RX, content, number)
    for name in onto:
        made.seen(
            ms + 2 + (late_ms if name == "one" else 0), "gw", "bridge b", f"bus {name}", TX, content, number
        )


def test_an_enveloped_frame_is_never_split_by_time(spark: "SparkSession") -> None:
    made = Capture()
    for number in range(30):
        enveloped(made, number)
    enveloped(made, 30, late_ms=6000, onto=("one",))
    assert faults(made.rows(spark)) == [("lost", "in bridge", "bus two", 1)]


def mixed(made: Capture, number: int, late_ms: float = 0, is_lost: bool = False) -> None:
    """Carry a plain frame from a bus by a trunk, on which it may be late, onto another bus."""
    content, ms = frame("door", "open"), 10_000.0 * number
    made.seen(ms, "gw-a", "bus left", "bus left", RX, content)
    made.seen(ms + 1, "gw-a", "bridge a", "bus left", RX, content)
    made.seen(ms + 2, "gw-a", "bridge a", "trunk", TX, content, number)
    made.seen(ms + 3 + late_ms, "gw-b", "bridge b", "trunk", RX, content, number)
    if not is_lost:
        made.seen(ms + 4 + late_ms, "gw-b", "bridge b", "bus right", TX, content)


def test_a_frame_that_has_an_envelope_on_a_trunk_is_not_split_there(spark: "SparkSession") -> None:
    made = Capture()
    for number in range(30):
        mixed(made, number)
    mixed(made, 30, late_ms=3000, is_lost=True)
    assert faults(made.rows(spark)) == [("lost", "in bridge", "bus right", 1)]


def test_the_last_value_is_the_newest_wherever_it_was_heard(spark: "SparkSession") -> None:
    """Nearer counts only for the rows of one frame, which two clocks may put into the wrong order."""
    made = Capture()
    made.seen(0, "gw-a", "bus hall", "bus hall", RX, frame("oven", "180"))
    made.seen(-3, "gw-b", "bridge b", "can", RX, frame("oven", "180"))
    made.seen(5000, "gw-b", "bridge b", "can", RX, frame("oven", "200"))
    made.seen(9000, "gw-b", "bridge b", "can", RX, frame("oven", "210"))
    (row,) = last(made.rows(spark)).collect()
    assert (bytes(row.payload), row.bus, row.rows) == (b"210", "can", 3)
    earlier = Capture()
    earlier.packets = made.packets[:2]
    (row,) = last(earlier.rows(spark)).collect()
    assert (bytes(row.payload), row.bus) == (b"180", "bus hall")


@pytest.mark.parametrize("order", [("180", "210", "200"), ("210", "200", "180"), ("200", "180", "210")])
def test_of_several_values_at_one_time_the_last_is_the_greatest(
    spark: "SparkSession", order: tuple[str, ...]
) -> None:
    made = Capture()
    for data in order:
        made.seen(0, "gw-a", "bridge b", "can", RX, frame("oven", data))
    (row,) = last(made.rows(spark)).collect()
    assert (bytes(row.payload), row.rows) == (b"210", 3)


def crossing(
    made: Capture, ms: float, data: str, ahead_ms: float, way: str = "ab", is_lost: bool = False
) -> None:
    """Carry a plain frame over CAN from one gateway's bus to the other's; gw-b's clock is ahead."""
    (one, its), (other, theirs) = (("a", 0.0), ("b", ahead_ms))[:: 1 if way == "ab" else -1]
    content = frame(f"door/{way}", data)
    made.seen(ms + its, f"gw-{one}", f"bus {one}", f"bus {one}", RX, content)
    made.seen(ms + its + 1, f"gw-{one}", f"bridge {one}", f"bus {one}", RX, content)
    made.seen(ms + its + 2, f"gw-{one}", f"bridge {one}", "can", TX, content)
    made.seen(ms + theirs + 3, f"gw-{other}", f"bridge {other}", "can", RX, content)
    if not is_lost:
        made.seen(ms + theirs + 4, f"gw-{other}", f"bridge {other}", f"bus {other}", TX, content)


@pytest.mark.parametrize("ahead_ms", [0, 3000, -60_000])
def test_clocks_far_apart_make_no_fault_and_hide_none(spark: "SparkSession", ahead_ms: float) -> None:
    made = Capture()
    for number in range(40):
        crossing(made, 500 * number, str(number), ahead_ms, "ab" if number % 2 else "ba")
    for number in range(6):  # equal, and half a minute apart
        crossing(made, 100_000 + 30_000 * number, "same", ahead_ms)
    crossing(made, 300_000, "lost", ahead_ms, is_lost=True)
    crossing(made, 350_000, "same", ahead_ms, is_lost=True)
    assert faults(made.rows(spark)) == [("lost", "in bridge", "bus b", 2)]


def star(made: Capture, ms: float, home: str, data: str, dead: str = "", ahead_ms: float = 0) -> None:
    """Carry a frame from one of three buses by CAN onto the other two, each by a bridge of its own."""
    content = frame(f"motor/{home}", data)

    def at(name: str) -> float:
        return ms + (ahead_ms if name == "b" else 0)

    made.seen(at(home), f"gw-{home}", f"bus {home}", f"bus {home}", RX, content)
    if dead == home:
        return
    made.seen(at(home) + 1, f"gw-{home}", f"bridge {home}", f"bus {home}", RX, content)
    made.seen(at(home) + 2, f"gw-{home}", f"bridge {home}", "can", TX, content)
    for other in {"a", "b", "c"} - {home, dead}:
        made.seen(at(other) + 3, f"gw-{other}", f"bridge {other}", "can", RX, content)
        made.seen(at(other) + 4, f"gw-{other}", f"bridge {other}", f"bus {other}", TX, content)


@pytest.mark.parametrize(
    ("dead", "ahead_ms", "comes_back"),
    [("a", 0, True), ("b", 0, False), ("c", 20_000, True), ("b", -20_000, False)],
)
def test_of_three_bridges_the_one_that_was_dead_is_blamed(
    spark: "SparkSession", dead: str, ahead_ms: float, comes_back: bool
) -> None:
    made = Capture()
    for number in range(90):
        is_dead = 30 <= number < 60 or (number >= 60 and not comes_back)
        star(made, 20 * number, "abc"[number % 3], str(number), dead if is_dead else "", ahead_ms)
    rows = audit(made.rows(spark)).summary.collect()
    assert {(row.kind, row.stage, row.gateway, row.hub) for row in rows} == {
        ("lost", "no bridge", f"gw-{dead}", f"bridge {dead}")
    }
    lost = 30 if comes_back else 60
    # a third entered at the dead bridge's bus, and is missing on three segments; the others on that bus
    assert sum(row["count"] for row in rows) == lost // 3 * 3 + lost * 2 // 3


@pytest.mark.parametrize("is_told", [True, False])
def test_a_short_silence_that_a_takeover_ended_is_nobodys_charge(
    spark: "SparkSession", is_told: bool
) -> None:
    """Frames came every 5 ms, and a bridge passed none for 80 ms: too short to tell without its event."""
    made = Capture()
    for number in range(200):
        star(made, 5 * number, "ac"[number % 2], str(number), "b" if 100 <= number < 116 else "")
        if number == 116 and is_told:
            made.event(580.5, "gw-b", "bridge b", "takeover: granted by all brokers that can be reached")
    rows = audit(made.rows(spark)).summary.collect()
    assert {(row.kind, row.segment) for row in rows} == {("lost", "bus b")}
    assert {(row.stage, row.gateway) for row in rows} == {
        ("no bridge", "gw-b") if is_told else ("on the way", None)
    }
    assert sum(row["count"] for row in rows) == 16


def test_what_a_candidate_sends_as_it_takes_over_is_no_echo(spark: "SparkSession") -> None:
    """It heard the frame while nobody forwarded: no bridge has a row of that."""
    made = handed_over(0)
    for n, (gateway, hub, way) in enumerate([("gw-b", "bridge field", TX), ("gw-c", "bus hall", RX)]):
        made.seen(950 + n, gateway, hub, "bus hall", way, frame("motor/speed", "meanwhile"))
    for number in range(20):  # others go the other way
        content = frame("motor/speed", f"back {number}")
        made.seen(3000 + 100 * number, "gw-c", "bus hall", "bus hall", RX, content)
        made.seen(3001 + 100 * number, "gw-b", "bridge field", "bus hall", RX, content)
        made.seen(3002 + 100 * number, "gw-b", "bridge field", "can", TX, content)
    assert faults(made.rows(spark)) == []


@pytest.mark.engines(SPARK, SAIL)
def test_a_takeover_has_the_cause_that_its_candidate_told(spark: "SparkSession") -> None:
    made = handed_over(0)
    made.event(950, "gw-b", "bridge other", "takeover: of another bridge")
    made.event(940, "gw-b", "bridge field", "takeover: granted by all brokers that can be reached")
    made.event(960, "gw-b", "bridge field", "lease: active: confirmed")
    made.event(970, "gw-a", "bridge field", "lease: standby: another bridge forwards")
    [row] = failovers(made.rows(spark)).collect()
    assert (row["from"], row.to) == ("gw-a", "gw-b")
    assert row.cause == "takeover: granted by all brokers that can be reached"


@pytest.mark.parametrize("are_told", [True, False])
def test_buses_that_a_trunk_joins_are_one_segment(spark: "SparkSession", are_told: bool) -> None:
    """A frame enters at either of two buses, which both hear, and a bridge carries it on from one of them.
    The bridge loses one frame, and the trunk between the buses loses two."""
    made = Capture()
    if are_told:
        made.topology("gw-a", {"bus a": {"gateways": ["gw-a"], "trunks": ["bus b"]}})
    for number in range(60):
        content, at, way = frame("motor", str(number)), 20 * number, ("ab", "ba", "can")[number % 3]
        for n, bus in enumerate(["a"] if number in (12, 17) else "ab" if way == "can" else way):
            heard = TX if (way, bus) == ("can", "a") else RX
            made.seen(at + n, f"gw-{bus}", f"bus {bus}", f"bus {bus}", heard, content, number)
        ends = ("bus a", "can") if way != "can" else ("can", "bus a")
        made.seen(at + 2, "gw-a", "bridge field", ends[0], RX, content, number)
        if number != 30:
            made.seen(at + 3, "gw-a", "bridge field", ends[1], TX, content, number)
    found = audit(made.rows(spark))
    [totals] = found.totals.collect()
    rows = {(row.stage, row.segment, row.hub, row["count"]) for row in found.summary.collect()}
    due = {("in bridge", "can", "bridge field", 1), ("on the way", "bus a + bus b", "bus b", 2)}
    assert (rows == due) == are_told
    assert totals.frames == totals.crossed == 60


def test_a_quiet_bridge_is_not_blamed_for_what_another_one_lost(spark: "SparkSession") -> None:
    made = Capture()
    for number in range(60):
        star(made, 1000 * number, "abc"[number % 3], str(number))
    content = frame("motor/a", "lost")
    made.seen(30_500, "gw-a", "bus a", "bus a", RX, content)
    made.seen(30_501, "gw-a", "bridge a", "bus a", RX, content)
    rows = audit(made.rows(spark)).summary.collect()
    assert {(row.stage, row.gateway) for row in rows if row.stage != "upstream"} == {("in bridge", "gw-a")}


def with_a_hole(way: str) -> Capture:
    """Carry frames from one gateway's bus to the other's. The recorder of gw-b missed ten frames, and two
    frames were lost long after that. Of frames from gw-b that it missed, no row says where they came from."""
    made = Capture()
    for number in range(60):
        was_captured = not 20 <= number < 30
        packets, numbers = len(made.packets), made.numbers.copy()
        crossing(made, 1000 * number, str(number), 700, way if number else "ab", is_lost=number in (50, 51))
        if not was_captured:
            made.packets[packets:] = [one for one in made.packets[packets:] if one.gateway != "gw-b"]
            made.numbers["gw-b"] = numbers["gw-b"]
        if number == 29:
            made.missed(30_000, "gw-b", 10 * (2 if way == "ab" else 3))
    return made


@pytest.mark.parametrize("way", ["ab", "ba"])
def test_what_a_recorder_missed_is_not_lost(spark: "SparkSession", way: str) -> None:
    found = audit(with_a_hole(way).rows(spark))
    rows = {(row.kind, row.stage, row.gateway): row["count"] for row in found.summary.collect()}
    at = "gw-b" if way == "ab" else "gw-a"
    assert rows.pop(("not captured", "recorder", "gw-b"), 0) == (10 if way == "ab" else 0)
    assert rows == {("lost", "in bridge", at): 2}
    assert sum(row.missed for row in found.capture.collect()) == (20 if way == "ab" else 30)
    assert all(row.holes == 0 for row in found.capture.collect())


def test_a_hole_without_a_word_of_the_recorder_is_one_too(spark: "SparkSession") -> None:
    made = with_a_hole("ab")
    made.packets = [one for one in made.packets if one.kind == 0]
    found = audit(made.rows(spark))
    assert {(row.kind, row["count"]) for row in found.summary.collect()} == {
        ("not captured", 10),
        ("lost", 2),
    }
    assert sorted(row.holes for row in found.capture.collect()) == [0, 21]


@pytest.mark.parametrize("was_captured", [True, False])
def test_a_pause_of_a_recorder_is_no_pause_of_service(spark: "SparkSession", was_captured: bool) -> None:
    made = Capture()
    for number in range(60):
        at = 20 * number
        made.seen(at, "gw-a", "bus a", "bus a", RX, frame("door", str(number)))
        if not 20 <= number < 40:
            made.seen(at + 1, "gw-b", "bridge b", "bus a", RX, frame("door", str(number)))
            made.seen(at + 2, "gw-b", "bridge b", "can", TX, frame("door", str(number)))
        elif number == 39 and not was_captured:
            made.missed(at, "gw-b", 40)
    found = failovers(made.rows(spark)).collect()
    assert [row.bus for row in found] == (["can"] if was_captured else [])


def filtered(is_told: bool, pattern: tuple[str, ...] = ("motor", "temp")) -> Capture:
    """Carry frames from a bus to CAN, but for those of one pattern, which a filter keeps out."""
    made = Capture()
    sides = [{"segment": "bus a"}, {"segment": "can", "deny_out": [list(Pattern(*pattern))]}]
    if is_told:
        made.topology("gw-a", {"bridge a": {"gateways": ["gw-a"], "pattern": [], "sides": sides}})
    for number in range(60):
        name = ("motor/speed", "motor/temp", "motor/temp/oil")[number % 3]
        content, at = frame(name, str(number)), 20 * number
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 1, "gw-a", "bridge a", "bus a", RX, content)
        if name == "motor/speed" and number != 30:
            made.seen(at + 2, "gw-a", "bridge a", "can", TX, content)
    return made


def test_what_a_filter_keeps_out_is_not_lost_however_deep_it_looks(spark: "SparkSession") -> None:
    assert faults(filtered(is_told=True).rows(spark)) == [("lost", "in bridge", "can", 1)]
    assert faults(filtered(is_told=False).rows(spark)) == [("lost", "in bridge", "can", 41)]
