"""Clocks of gateways that differ: what is said of two of them depends on no third one."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.audit import few
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.latency import latency
from pipeline.analysis.shared.clocks import Clock, Pair, offsets
from pipeline.analysis.shared.drifts import LONG_NS, against, planned
from pipeline.analysis.shared.inventory import Run
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, Capture, cross, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES, LOST, AHEAD_MS = 120, (51, 83, 84), 40_000.0


def plain_buses(stranger: str, goes_back: bool) -> Capture:
    """Two gateways with a bus each and a wire between them, without envelopes, and a stranger that hears
    neither. The clock of gw-b is ahead by 40 s, and its bridge loses three frames."""
    made = Capture()
    for number in range(FRAMES):
        at = 100.0 * number
        late = at + AHEAD_MS
        if stranger:
            made.seen(at, stranger, "bus c", "bus c", RX, frame("lamp", str(number)))
        cross(made, at, late, number, number in LOST, goes_back)
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("is_few", [True, False])
@pytest.mark.parametrize("goes_back", [True, False])
@pytest.mark.parametrize("stranger", ["", "gw-0", "gw-z"])
def test_clocks_that_differ_do_not_move_the_blame(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, stranger: str, goes_back: bool, is_few: bool
) -> None:
    if not is_few:
        monkeypatch.setattr(few, "MOST", 0)
    found = audit(plain_buses(stranger, goes_back).rows(spark))
    assert [row[:5] for row in found.summary.collect()] == [
        ("lost", "in bridge", "bus b", "gw-b", "bridge b")
    ]
    assert found.summary.collect()[0]["count"] == len(LOST)
    assert found.totals.collect()[0].frames == FRAMES * (1 + goes_back + bool(stranger))


@pytest.mark.engines(SAIL)
def test_wires_between_two_are_timed_whatever_a_third_hears(spark: "SparkSession") -> None:
    found = latency(plain_buses("gw-0", goes_back=True).rows(spark))
    times = {
        (row.from_gateway, row.to_gateway): row.p50 for row in found.summary.collect() if row.kind == "wire"
    }
    assert times == pytest.approx({("gw-a", "gw-b"): 1000.0, ("gw-b", "gw-a"): 1000.0}, rel=0.002)
    clocks = {row.gateway: (row.against, row.ahead_ns) for row in found.clocks.collect()}
    assert clocks.pop("gw-b") == ("gw-a", pytest.approx(AHEAD_MS * 1e6, abs=10))
    assert clocks == {"gw-0": ("gw-0", 0), "gw-a": ("gw-a", 0)}


def test_clocks_are_compared_with_the_first_that_they_can_be_compared_with() -> None:
    pairs: list[Pair] = [
        ("b", "c", 7, 1),
        ("c", "b", 3, 1),
        ("c", "d", 20, 1),
        ("d", "c", -16, 1),
        ("e", "d", 9, 1),
    ]
    known = {"a": Clock("a", 0), "b": Clock("b", 0), "c": Clock("b", 2), "d": Clock("b", 20)}
    assert offsets(pairs, "abcde") == {**known, "e": Clock("e", 0)}
    assert offsets(pairs, "abcde", by_one_way=True) == {**known, "e": Clock("b", 11)}


def test_drifts_are_followed_from_one_gateway_to_the_next() -> None:
    """Of b and d nobody hears the first, and only c hears both."""
    found = against("abcd", {("b", "c"): [(0, 5), (10, 25)], ("c", "d"): [(0, 1), (50, 2)], ("a", "d"): []})
    assert found == {"a": (), "b": (), "c": [(5, 5), (35, 25)], "d": [(1, 2), (6, 6), (36, 26), (52, 37)]}
    assert against("cd", {("c", "d"): [(0, 1), (10, 2)]})["d"] == [(1, 1), (12, 2)]
    assert against("dcb", {("b", "c"): [(0, 5)], ("c", "d"): [(0, 1)]})["b"] == [(0, -6)]


def test_a_gateway_that_stood_by_leaves_the_clocks_of_others_compared() -> None:
    """Its recorder wrote its last row alone."""
    runs = [
        Run(name, 1, 0, 0, 2 * LONG_NS, True, last) for name, last in (("a", 9000), ("b", 9000), ("c", 0))
    ]
    assert planned(runs) == planned(runs[:2]) is not None
