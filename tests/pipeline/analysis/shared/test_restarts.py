"""Clocks that are others after a restart: the audit finds what it would have found, and says so."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit import few
from pipeline.analysis.audit.coverage import CLOCK
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.latency import latency
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.restarts import apart, are_several, parts_of
from pipeline.analysis.shared.steps import Step
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, cross, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000_000
FRAMES, RESTARTED, LOST = 150, 100, (31, 121, 122)


def plain_buses(before_ms: float, after_ms: float, goes_back: bool) -> Capture:
    """Two gateways with a bus each and a wire between them, without envelopes. gw-b starts again, and its
    clock is ahead by one time before that, and by another after it."""
    made = Capture()
    for number in range(FRAMES):
        at = 100.0 * number
        if number == RESTARTED:
            made.restart(at - 30 + before_ms, "gw-b")
        late = at + (before_ms if number < RESTARTED else after_ms)
        cross(made, at, late, number, number in LOST, goes_back)
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("is_few", [True, False])
@pytest.mark.parametrize("goes_back", [True, False])
@pytest.mark.parametrize("ahead_ms", [(0, 0), (40_000, 0), (0, 40_000), (0, -3_000)])
def test_another_clock_after_a_restart_makes_no_fault_and_moves_no_blame(
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    ahead_ms: tuple[float, float],
    goes_back: bool,
    is_few: bool,
) -> None:
    if not is_few:
        monkeypatch.setattr(few, "MOST", 0)
    found = audit(plain_buses(*ahead_ms, goes_back).rows(spark))
    assert [(*row[:5], row["count"]) for row in found.summary.collect()] == [
        ("lost", "in bridge", "bus b", "gw-b", "bridge b", len(LOST))
    ]
    assert found.totals.collect()[0].frames == FRAMES * (1 + goes_back)
    before, after = ahead_ms
    told = [(row.name, round(row.n / 1e6)) for row in found.coverage.collect() if row.what == CLOCK]
    assert told == [("gw-b", after - before)] * (after != before)


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("ahead_ms", [(0, 0), (40_000, 0), (0, 400), (7, -3_000)])
def test_wires_are_timed_by_the_clock_of_each_run(
    spark: "SparkSession", ahead_ms: tuple[float, float]
) -> None:
    found = latency(plain_buses(*ahead_ms, goes_back=True).rows(spark)).summary.collect()
    wires = {row.from_gateway: (row.least, row.most) for row in found if row.kind == "wire"}
    assert wires == dict.fromkeys(("gw-a", "gw-b"), pytest.approx((1000.0, 1000.0), abs=0.01))


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("by_ms", [0, 30_000, -30_000])
def test_wires_are_timed_by_a_clock_that_steps(spark: "SparkSession", by_ms: float) -> None:
    made = Capture()
    for number in range(200):
        at = 100.0 * number
        late = at + (by_ms if number >= 120 else 0)
        for way, begin, end in ((0, "gw-a", "gw-b"), (1, "gw-b", "gw-a")):
            content = frame("motor", f"{number} {way}")
            times = {"gw-a": at + 20 * way, "gw-b": late + 20 * way}
            made.seen(times[begin], begin, f"bridge {begin}", f"bus {begin}", RX, content)
            made.seen(times[begin] + 0.2, begin, f"bridge {begin}", "wire", TX, content)
            made.seen(times[end] + 1.2, end, f"bridge {end}", "wire", RX, content)
            made.seen(times[end] + 1.3, end, f"bridge {end}", f"bus {end}", TX, content)
    found = latency(made.rows(spark)).summary.collect()
    wires = {row.from_gateway: (row.least, row.most) for row in found if row.kind == "wire"}
    assert wires == dict.fromkeys(("gw-a", "gw-b"), pytest.approx((1000.0, 1000.0), abs=0.01))


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("after_ms", [0, 40_000])
def test_recorders_of_one_gateway_have_one_clock(spark: "SparkSession", after_ms: float) -> None:
    """One records the bus of gw-b, which no wire reaches, another its bridge: both start again."""
    made = plain_buses(0, after_ms, goes_back=True)
    heard = [one for one in made.packets if one.bus == "bus b" and one.hub == "bridge b"]
    for number, one in enumerate(heard):
        is_after = one.boot == 6
        first = sum(other.boot == 5 for other in heard)
        made.packets.append(
            one._replace(hub="bus b", dir=int(RX), boot=16 if is_after else 15,
                         cap_seq=number - first * is_after, ts_ns=one.ts_ns + 30_000)
        )  # fmt: skip
    found = audit(made.rows(spark))
    assert [(*row[:5], row["count"]) for row in found.summary.collect()] == [
        ("lost", "in bridge", "bus b", "gw-b", "bridge b", len(LOST))
    ]
    told = sorted((row.name, round(row.n / 1e9)) for row in found.coverage.collect() if row.what == CLOCK)
    assert told == [("gw-b", 40)] * (2 if after_ms else 0)


def run(gateway: str, boot: int, first_s: int, rows: int) -> Run:
    return Run(gateway, boot, 0, first_s * S, first_s * S + rows * S, True, rows)


def test_runs_are_given_the_clock_of_the_longest_that_can_be_compared() -> None:
    runs = [run("a", 1, 0, 90), *(run("b", boot, 100 * boot, 50 // boot) for boot in (1, 2, 3, 4))]
    assert are_several(runs)
    assert not are_several(runs[:2])
    ahead = {"b 1 0": (S, 99), "b 2 0": (8 * S, 99), "b 3 0": (9 * S, 3), "b 4 0": (S // 2, 99)}
    pairs = [("a 1 0", name, ns, n) for name, (ns, n) in ahead.items()]
    (step,) = apart(pairs, runs, S, by_one_way=True)  # the third is unknown, the fourth near
    assert (step.gateway, step.boot, step.seq, step.by_ns, step.at_ns) == ("b", 2, 0, 7 * S, 200 * S)
    assert apart(pairs, runs, S, by_one_way=False) == []


def test_runs_are_divided_where_their_clocks_step() -> None:
    whole = run("a", 1, 0, 90)
    first, last = parts_of([whole, run("b", 1, 0, 9)], [Step("a", 1, 40, 39 * S, 99 * S)])[:2]
    assert first == whole._replace(last_seq=39, last_ns=39 * S)
    assert last == whole._replace(first_seq=40, first_ns=99 * S)
