"""The rules of service: the same for Python's numbers and for Spark's columns."""

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.analysis.shared.service import BIN_NS, are_missed, is_pause, is_served, is_whole_bin
from pipeline.engine.choice import SAIL, SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = (0, 1, 2, 3, 9, 10, 11, 100, 103, 109, 110)


@pytest.mark.parametrize(("put", "brought", "served"), [(0, 0, False), (1, 10, True), (1, 11, False)])
def test_a_few_frames_beside_many_are_echoes(put: int, brought: int, served: bool) -> None:
    assert is_served(put, brought) is served


@pytest.mark.parametrize(
    ("others", "own", "missed"),
    [(2, 0, False), (3, 0, True), (12, 10, False), (13, 10, True), (109, 100, False), (110, 100, True)],
)
def test_frames_are_missed_if_enough_came_elsewhere(others: int, own: int, missed: bool) -> None:
    assert are_missed(others, own) is missed


def test_only_whole_bins_count() -> None:
    whole = [n for n in range(5) if is_whole_bin(n, BIN_NS // 2, 3 * BIN_NS)]
    assert whole == [1, 2]
    assert (is_pause(100_000_000, 100), is_pause(100_000_001, 100)) == (False, True)


def rules(a: Any, b: Any) -> tuple[Any, ...]:
    bins = is_whole_bin(a, b * BIN_NS, (b + 3) * BIN_NS)
    return is_served(a, b), are_missed(a, b), is_pause(a * 1_000_000, 10), bins


@pytest.mark.engines(SPARK, SAIL)
def test_spark_has_the_same_rules(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F

    from pipeline.analysis.shared.frames import local_table

    pairs = list(product(NUMBERS, NUMBERS))
    a, b = F.col("a"), F.col("b")
    rows = local_table(spark, {"a": int, "b": int}, pairs).select(a, b, *rules(a, b)).collect()
    assert {tuple(row) for row in rows} == {(a, b, *rules(a, b)) for a, b in pairs}
