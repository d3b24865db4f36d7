"""Clocks that drift, as exactly as wires tell it: times of wires are right however the clocks ran."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import Row

from capture.schema import Kind
from pipeline.analysis.latency import latency
from pipeline.analysis.shared.wire_drifts import Slot, drifted, width_ns
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S, MS = 1_000_000_000, 1_000_000
FRAMES, STEP_MS = 600, 500.0
Ahead = Callable[[float], float]
AHEAD_MS: dict[str, Ahead] = {
    "even": lambda ms: 3.0,
    "faster by 100 ppm": lambda ms: 1e-4 * ms,
    "slower by 40 ppm, and an hour behind": lambda ms: -4e-5 * ms - 3_600_000,
    "faster, and then even": lambda ms: min(2e-4 * ms, 30) + 40_000,
    "by seconds": lambda ms: 2e-3 * ms,
    "slower, and then even, and an hour behind": lambda ms: -min(2e-4 * ms, 30) - 3_600_000,
}


def send(made: Capture, ways: tuple[tuple[float, str], tuple[float, str]], content: bytes) -> None:
    """Have a frame cross the wire, which takes 1 ms, from one gateway to another: each with its time."""
    (at, one), (late, other) = ways
    made.seen(at, one, f"bridge {one}", f"bus {one}", RX, content)
    made.seen(at + 0.2, one, f"bridge {one}", f"wire {min(one, other)}", TX, content)
    made.seen(late + 1.2, other, f"bridge {other}", f"wire {min(one, other)}", RX, content)
    made.seen(late + 1.3, other, f"bridge {other}", f"bus {other}", TX, content)


def chain(*clocks: Ahead) -> Capture:
    """Gateways a, b ... of which each hears the next one, both ways. `clocks` tell how far each is ahead."""
    made, names = Capture(goes_on=True), "abcd"[: len(clocks)]
    for number in range(FRAMES):
        for place, (one, other) in enumerate(pairwise(names)):
            for way, ends in enumerate(((one, other), (other, one))):
                at = STEP_MS * number + 20 * way + place
                first, second = ((at + clocks[names.index(end)](at), end) for end in ends)
                send(made, (first, second), frame(f"motor {place} {way}", f"{number}"))
    for name, ahead in zip(names, clocks, strict=True):
        made.missed(STEP_MS * FRAMES + ahead(STEP_MS * FRAMES), name, 0)  # the last row
    return made


def check_times(spark: "SparkSession", ahead: Ahead) -> None:
    """Compare times of a wire, between two clocks of which one is ahead, with what the wire takes."""
    found = latency(chain(lambda ms: 0.0, ahead).rows(spark))
    wires = [row for row in found.summary.collect() if row.kind == "wire"]
    assert {(row.from_gateway, row.to_gateway) for row in wires} == {("a", "b"), ("b", "a")}
    assert all(700 < row.least <= row.most < 1_300 for row in wires)
    assert all(900 < row.p50 < 1_100 for row in wires)
    (row,) = (row for row in found.clocks.collect() if row.gateway == "b")
    assert row.drift_ns / 1e6 == pytest.approx(ahead(FRAMES * STEP_MS) - ahead(0), rel=0.02, abs=0.05)
    assert (row.against, row.ahead_ns / 1e6) == ("a", pytest.approx(ahead(0), abs=60))


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("clock", AHEAD_MS)
def test_wires_are_timed_by_clocks_that_drift(spark: "SparkSession", clock: str) -> None:
    check_times(spark, AHEAD_MS[clock])


def test_spark_times_them_alike(spark: "SparkSession") -> None:
    """A clock with a bend and negative times: other clocks make no other plan."""
    check_times(spark, AHEAD_MS["slower, and then even, and an hour behind"])


@pytest.mark.engines(SAIL)
def test_drifts_are_followed_over_gateways_in_between(spark: "SparkSession") -> None:
    """Only b hears a. The clocks of c and d drift as that of b does, but for a bend in that of d."""
    b: Ahead = lambda ms: 5e-5 * ms  # noqa: E731
    found = latency(chain(lambda ms: 0.0, b, b, lambda ms: b(ms) + min(1e-4 * ms, 20)).rows(spark))
    wires = [row for row in found.summary.collect() if row.kind == "wire"]
    assert len(wires) == 6
    assert all(700 < row.least <= row.most < 1_300 for row in wires)
    drift_ms = {row.gateway: row.drift_ns / 1e6 for row in found.clocks.collect()}
    wanted = {"a": 0, "b": 15, "c": 15, "d": 35}
    assert drift_ms == {name: pytest.approx(ms, rel=0.05) for name, ms in wanted.items()}


def slots(ahead_ms: Ahead, slower_ms: Callable[[Random], float] = lambda _: 0.0) -> list[Slot]:
    """Slots of 10 s, of a wire that takes 1 ms each way; there and back it may be slower."""
    random, found = Random(7), []
    for number in range(60):
        there, back = (1 + slower_ms(random) for _ in range(2))
        ahead = ahead_ms(10_000 * number) + (there - back) / 2
        found.append(Slot(number * 10 * S, int(ahead * MS), int((there + back) * MS)))
    return found


def test_slower_frames_of_one_way_are_no_drift() -> None:
    for slower in (lambda random: random.random() * 8, lambda random: 20 * (random.random() > 0.6)):
        assert len({ahead for _, ahead in drifted(slots(lambda ms: 0.0, slower))}) == 1


def test_a_drift_is_seen_through_slower_frames() -> None:
    points = drifted(slots(lambda ms: 1e-4 * ms, lambda random: random.random() * 8))
    assert points[-1][1] - points[0][1] == pytest.approx(1e-4 * (points[-1][0] - points[0][0]), rel=0.2)


def test_a_clock_that_is_compared_once_did_not_drift() -> None:
    assert drifted([Slot(5 * S, 70, 10)]) == [(5 * S, 70)]


def test_slots_are_as_wide_as_the_longest_gateway_asks_for() -> None:
    def frames(gateway: str, first_s: float, last_s: float, kind: Kind = Kind.FRAME) -> Row:
        times = {"first_ns": int(first_s * S), "last_ns": int(last_s * S)}
        return Row(gateway=gateway, kind=kind.value, **times)

    assert width_ns([frames("a", 0, 40), frames("b", 9_000, 9_010)]) == S
    assert width_ns([frames("a", 0, 600), frames("a", 700, 1_200), frames("b", 9_000, 9_010)]) == 20 * S
    assert width_ns([frames("a", 0, 600), frames("a", 0, 9_000, Kind.TOPOLOGY)]) == 10 * S
    assert width_ns([]) == S
