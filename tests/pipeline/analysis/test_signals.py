"""The sums of signals, of batches that come in any order."""

from math import inf
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.signals import busiest, episodes, resampled, signals
from pipeline.engine.choice import SAIL, SPARK
from pipeline.signals.blocks import KEYS
from pipeline.signals.episodes import EPISODES, OUTSIDE
from pipeline.signals.work import BINS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA: Final = ", ".join([
    *(f"{name} string" for name in KEYS), "rows long", "first_ns long", "last_ns long", "last double",
    "last_text string", "min double", "mean double", "max double", "numbers long", "m2 double", "nans long",
    "gaps long", "longest_ns long", "longest_from_ns long", "outside long",
])  # fmt: skip


def batch(first_ns: int, longest_from_ns: int) -> dict[str, Any]:
    """Return the sums of three values, the longest pause between which is 10 ns."""
    values = {"last": 1.0, "last_text": None, "min": 1.0, "mean": 1.0, "max": 1.0, "numbers": 3, "m2": 0.0}
    pauses = {"gaps": 0, "longest_ns": 10, "longest_from_ns": longest_from_ns}
    times = {"rows": 3, "first_ns": first_ns, "last_ns": first_ns + 15}
    return {**dict.fromkeys(KEYS, "a"), **times, **values, **pauses, "nans": 0, "outside": 0}


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize(("apart_ns", "start_ns"), [(20, 105), (40, 115)], ids=["within", "between"])
def test_of_several_pauses_that_are_equally_long_the_first_is_told(
    spark: "SparkSession", apart_ns: int, start_ns: int
) -> None:
    batches = [batch(at_ns, at_ns + 5) for at_ns in range(100, 100 + 3 * apart_ns, apart_ns)]
    for rows in (batches, batches[::-1]):
        (found,) = signals(spark.createDataFrame(rows, _SCHEMA), 1.0).collect()
        assert found.longest_from_ns == start_ns


_WINDOWS: Final = ", ".join([
    "start_ns long", *(f"{name} string" for name in KEYS),
    "rows long", "mean double", "min double", "max double",
])  # fmt: skip


def windows(signal: str, rows: int, *values: float | None, unit: str = "a") -> list[tuple[Any, ...]]:
    """Return a window for each value, which the signal has all that time."""
    keys = [{"signal": signal, "unit": unit}.get(name, "a") for name in KEYS]
    return [(at_ns, *keys, rows, value, value, value) for at_ns, value in enumerate(values)]


@pytest.mark.engines(SPARK, SAIL)
def test_of_busy_signals_those_that_change_come_first(spark: "SparkSession") -> None:
    still, slow = windows("still", 900, 5.0, 5.0), windows("slow", 2, 0.5, 1.0)
    fast, text = windows("fast", 30, 3.0, 2.0), windows("text", 999, None, None)
    found = busiest(spark.createDataFrame([*still, *slow, *fast, *text], _WINDOWS), 2).collect()
    assert [(row.signal, row.start_ns) for row in found] == [
        ("fast", 0),
        ("fast", 1),
        ("slow", 0),
        ("slow", 1),
    ]
    every = busiest(spark.createDataFrame([*still, *slow, *fast, *text], _WINDOWS), 9).collect()
    assert {row.signal for row in every} == {"fast", "slow", "still"}


@pytest.mark.engines(SPARK, SAIL)
def test_of_signals_that_change_those_with_a_unit_come_before_counters_and_checksums(
    spark: "SparkSession",
) -> None:
    counter, speed = windows("counter", 900, 0.0, 1.0, unit=""), windows("speed", 2, 0.5, 1.0, unit="kph")
    still = windows("still", 999, 5.0, 5.0, unit="V")
    found = busiest(spark.createDataFrame([*counter, *speed, *still], _WINDOWS), 1).collect()
    assert {row.signal for row in found} == {"speed"}
    found = busiest(spark.createDataFrame([*counter, *speed, *still], _WINDOWS), 2).collect()
    assert {row.signal for row in found} == {"speed", "counter"}


def sums(value: float, other: float) -> dict[str, Any]:
    return {
        **batch(100, 105),
        "last": value,
        "min": min(value, other),
        "mean": value,
        "max": max(value, other),
    }


def run(value: float, other: float) -> dict[str, Any]:
    ends = {"kind": OUTSIDE, "start_ns": 1, "end_ns": 2, "rows": 2, "is_first": 0, "is_last": 0}
    return {**dict.fromkeys(KEYS, "a"), **ends, "min": min(value, other), "max": max(value, other)}


def bin_of(value: float, other: float) -> dict[str, Any]:
    ends = {
        "start_ns": 0,
        "rows": 2,
        "numbers": 2,
        "sum": value,
        "last_ns": 1,
        "last": value,
        "last_text": None,
    }
    return {**dict.fromkeys(KEYS, "a"), **ends, "min": min(value, other), "max": max(value, other)}


def typed(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize(("value", "other"), [(inf, inf), (-inf, -inf), (inf, -inf), (inf, 5.0), (-inf, 5.0)])
def test_what_is_infinite_stays_so(spark: "SparkSession", value: float, other: float) -> None:
    low, high = min(value, other), max(value, other)
    (found,) = signals(spark.createDataFrame([sums(value, other)], _SCHEMA), 1.0).collect()
    assert (found.min, found.max, found["last"]) == (low, high, value)
    (found,) = episodes(spark.createDataFrame([run(value, other)], typed(EPISODES)), 1.0).collect()
    assert (found.min, found.max) == (low, high)
    (found,) = resampled(spark.createDataFrame([bin_of(value, other)], typed(BINS))).collect()
    assert (found.min, found.max, found["last"]) == (low, high, value)


@pytest.mark.engines(SPARK, SAIL)
def test_a_signal_that_is_always_infinite_does_not_change(spark: "SparkSession") -> None:
    rows = [*windows("still", 900, inf, inf), *windows("slow", 2, 0.5, 1.0)]
    (*_, found) = busiest(spark.createDataFrame(rows, _WINDOWS), 1).collect()
    assert found.signal == "slow"
