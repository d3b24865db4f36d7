"""Clocks that drift: the audit finds what it would have found, and says that one drifted."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit.findings import audit
from pipeline.analysis.audit.verdict import judge
from pipeline.analysis.shared.drifts import BIN_NS, LONG_NS, Plan, compared, evened, followed, planned
from pipeline.analysis.shared.inventory import Run
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, START_NS, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000_000
MS = 1_000_000
STEP_MS, FRAMES = 500.0, 2_800
LOST, DOUBLED = (51, 1301, 2702), (83, 2404)
PLAN = Plan(0, 60 * S, 2 * S)
Ahead = Callable[[float], float]


def plain_buses(ahead_ms: Ahead, levels: int) -> Capture:
    """Two gateways with a bus each and a wire between them, without envelopes, with frames of `levels` twice
    a second. The clock of gw-b is ahead by so many ms."""
    made = Capture(goes_on=True)
    for number in range(FRAMES):
        content, at = frame("motor", str(number * 7 % levels)), STEP_MS * number
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 0.1, "gw-a", "bridge a", "bus a", RX, content)
        made.seen(at + 0.2, "gw-a", "bridge a", "wire", TX, content)
        late = at + ahead_ms(at)
        made.seen(late + 1, "gw-b", "bridge b", "wire", RX, content)
        for copy in range((number not in LOST) + (number in DOUBLED)):
            made.seen(late + 1.1 + copy / 10, "gw-b", "bridge b", "bus b", TX, content)
    for gateway in ("gw-a", "gw-b"):
        made.missed(STEP_MS * FRAMES + 5_000, gateway, 0)  # the last row
    return made


DRIFTS: dict[str, Ahead] = {
    "slower": lambda ms: -1.9e-3 * ms,
    "faster, and then evenly": lambda ms: min(2.2e-3 * ms, 2_500),
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("drift", DRIFTS)
def test_a_drift_makes_no_fault_and_hides_none(spark: "SparkSession", drift: str) -> None:
    found = audit(plain_buses(DRIFTS[drift], 50).rows(spark))
    tables: dict[str, Any] = {
        name: table.collect() for name, table in found._asdict().items() if name != "findings"
    }
    counts = Counter[str]()
    for row in tables["summary"]:
        counts[row.kind] += row["count"]
    assert counts == {"lost": len(LOST), "duplicate": len(DOUBLED)}
    assert tables["totals"][0].frames == FRAMES
    assert "; the clock of gw-b drifted by " in judge(tables).text


@pytest.mark.engines(SAIL)
def test_a_message_that_repeats_all_the_time_makes_no_more_pairs_than_others(spark: "SparkSession") -> None:
    made, beat, many = Capture(goes_on=True), frame("alive", "1"), 1_500
    for number in range(many):
        for gateway in ("gw-a", "gw-b"):
            made.seen(number * 8.0, gateway, "bus", "bus", RX, beat)
            if number % 50 == 0:
                made.seen(number * 8.0, gateway, "bus", "bus", RX, frame("motor", str(number)))
    found = compared(made.rows(spark), Plan(START_NS, 60 * S, 2 * S)).collect()
    assert {(row.its, row.other, row.number, row.bin, row.n) for row in found} == {("gw-b", "gw-a", 0, 0, 5)}


def test_of_many_contents_some_are_compared() -> None:
    few, many = (
        planned([run("a", 0, 600, rows), run("b", 0, 600, 9 * rows)]) for rows in (600_000, 6_000_000)
    )
    assert few is not None
    assert many is not None
    assert (few.one_in, few.width_ns) == (1, S // 2)
    assert (many.one_in, many.width_ns) == (4, S // 2)


def bins(*apart_ms: float, count: int = 30) -> Mapping[int, tuple[int, int]]:
    return {int(one * MS // BIN_NS): (count, int(one * MS)) for one in apart_ms}


def test_the_distance_of_frames_that_repeat_is_followed() -> None:
    ahead = [45.0 * number for number in range(80)]
    times = {number: bins(*(one + 500 * k for k in range(-9, 9))) for number, one in enumerate(ahead)}
    del times[7], times[40]
    points = followed(times, PLAN)
    assert [ns for _, ns in points] == [int(one * MS) for n, one in enumerate(ahead) if n not in (7, 40)]
    assert [at for at, _ in points[:2]] == [S, 61 * S]


def test_what_few_frames_say_or_what_is_far_is_not_followed() -> None:
    assert followed({0: bins(5, count=3)}, PLAN) == []
    times = {0: bins(0), 1: bins(3000), 2: bins(10, count=3), 3: bins(20)}
    assert [ns for _, ns in followed(times, PLAN)] == [0, 20 * MS]


def test_points_between_their_neighbours_are_left_out() -> None:
    def line(*ms: float) -> Sequence[tuple[int, int]]:
        return [(number * S, int(one * MS)) for number, one in enumerate(ms)]

    assert evened(line(0, 10, 21, 30)) == [(0, 0), (3 * S, 30 * MS)]
    assert evened(line(0, 100, 200, 100, 0)) == [(0, 0), (2 * S, 200 * MS), (4 * S, 0)]
    assert evened(line(7)) == [(0, 7 * MS)]
    assert len(evened(line(*(1000.0 * (number % 2) for number in range(500))))) <= 20


def run(gateway: str, first_s: float, last_s: float, rows: int) -> Run:
    return Run(gateway, 1, 0, int(first_s * S), int(last_s * S), True, rows)


def test_short_captures_and_those_of_one_gateway_are_not_looked_at() -> None:
    long_s = 2 * LONG_NS / S
    assert planned([run("a", 0, 100, 9000), run("b", 0, 100, 9000)]) is None
    assert planned([run("a", 0, long_s, 9000)]) is None
    found = planned([run("a", 0, long_s, 60_000), run("b", 0, long_s, 6_000)])
    assert found is not None
    assert (found.begin_ns, found.width_ns) == (0, 12 * S)
    assert found.step_ns == 22 * S
