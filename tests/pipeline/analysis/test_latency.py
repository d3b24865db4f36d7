"""Percentiles from counts of rounded delays, beside those of the delays themselves."""

from random import Random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pipeline.analysis.latency import percentiles, sketches
from pipeline.analysis.shared.hops import HOP
from pipeline.engine.choice import SAIL, SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SPARK, SAIL)
RANKS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
MINUTE_NS = 60_000_000_000


def measured(spark: "SparkSession", delays: list[int]) -> dict[str, float]:
    """Return the percentiles of delays over three minutes, in us."""
    rows = [(n % 3 * MINUTE_NS, delay, "wire", *["a"] * len(HOP)) for n, delay in enumerate(delays)]
    names = ", ".join(f"`{name}` string" for name in ("kind", *HOP))
    frame = spark.createDataFrame(rows, f"from_ns bigint, delay_ns bigint, {names}")
    (found,) = percentiles(sketches(frame)).collect()
    return found.asDict()


@pytest.mark.parametrize("most", [100, 10**6, 10**12])
def test_percentiles_are_within_a_fifth_of_a_percent(spark: "SparkSession", most: int) -> None:
    random = Random(most)
    delays = [int(most ** random.random()) for _ in range(4_000)]
    found, exact = measured(spark, delays), sorted(delays)
    assert (found["n"], found["least"], found["most"]) == (4_000, exact[0] / 1000, exact[-1] / 1000)
    for name, rank in RANKS.items():
        wanted = exact[round(rank * len(exact)) - 1] / 1000
        assert found[name] == pytest.approx(wanted, rel=0.002)


def test_times_before_zero_are_in_order(spark: "SparkSession") -> None:
    found = measured(spark, [-70_000, -5_000, 0, 6, 80_000])  # clocks that were corrected too far
    assert [found[name] for name in ("least", "p50", "most")] == [-70.0, 0.0, 80.0]


def test_equal_times_are_exact(spark: "SparkSession") -> None:
    assert {measured(spark, [123_456_789] * 9)[name] for name in RANKS} == {123_456.789}
