"""Clocks that are others after a restart: the audit finds what it would have found, and says so."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit import few
from pipeline.analysis.audit.coverage import CLOCK
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.restarts import apart, are_several
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000_000
FRAMES, RESTARTED, LOST = 150, 100, (31, 121, 122)


def plain_buses(before_ms: float, after_ms: float, goes_back: bool) -> Capture:
    """Two gateways with a bus each and a wire between them, without envelopes. gw-b starts again, and its
    clock is ahead by one time before that, and by another after it."""
    made = Capture()
    for number in range(FRAMES):
        content, at = frame("motor", str(number)), 100.0 * number
        if number == RESTARTED:
            made.restart(at - 30 + before_ms, "gw-b")
        late = at + (before_ms if number < RESTARTED else after_ms)
        made.seen(at, "gw-a", "bus a", "bus a", RX, content)
        made.seen(at + 0.1, "gw-a", "bridge a", "bus a", RX, content)
        made.seen(at + 0.2, "gw-a", "bridge a", "wire", TX, content)
        made.seen(late + 1.2, "gw-b", "bridge b", "wire", RX, content)
        if number not in LOST:
            made.seen(late + 1.3, "gw-b", "bridge b", "bus b", TX, content)
        if goes_back:
            back = frame("light", str(number))
            made.seen(late + 50, "gw-b", "bridge b", "bus b", RX, back)
            made.seen(late + 50.1, "gw-b", "bridge b", "wire", TX, back)
            made.seen(at + 51.1, "gw-a", "bridge a", "wire", RX, back)
            made.seen(at + 51.2, "gw-a", "bridge a", "bus a", TX, back)
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


def run(gateway: str, boot: int, first_s: int, rows: int) -> Run:
    return Run(gateway, boot, 0, first_s * S, first_s * S + rows * S, True, rows)


def test_runs_are_given_the_clock_of_the_longest_that_can_be_compared() -> None:
    runs = [
        run("a", 1, 0, 90),
        run("b", 1, 0, 50),
        run("b", 2, 100, 9),
        run("b", 3, 200, 9),
        run("b", 4, 300, 5),
    ]
    assert are_several(runs)
    assert not are_several(runs[:2])
    pairs = [
        ("a 1", "b 1", S, 99),
        ("a 1", "b 2", 8 * S, 99),
        ("a 1", "b 3", 9 * S, 3),
        ("a 1", "b 4", S // 2, 99),
    ]
    (step,) = apart(pairs, runs)  # too few frames say something of the third, and the fourth is near
    assert (step.gateway, step.boot, step.seq, step.by_ns, step.at_ns) == ("b", 2, 0, 7 * S, 100 * S)
