"""What is made of blocks: rows, sums by signal and windows of time, as a loop over the values has them."""

import math
import random
from itertools import pairwise
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest

from pipeline.signals.blocks import Block
from pipeline.signals.episodes import Episodes
from pipeline.signals.work import BINS, LONG, SUMS, Bins, Long, Sums, Work, ddl, schema
from tests.pipeline.signals.signals_support import MS, START_NS

Value = float | str | None


def block(values: list[Value], ms: list[float], low: float | None = None, high: float | None = None) -> Block:
    numbers = pa.array([one if isinstance(one, float) else None for one in values], pa.float64())
    texts = pa.array([one if isinstance(one, str) else None for one in values], pa.string())
    at = np.array([START_NS + round(one * MS) for one in ms], np.int64)
    return Block("gw-a", "can can0", "car/M", "S", "V", at, numbers, texts, low, high)


def test_long_rows_have_numbers_and_texts() -> None:
    (found,) = Long()([block([1.5, "on", float("nan")], [0, 1, 2])])
    assert found.schema == schema(LONG)
    rows = found.to_pylist()
    assert [(row["value"], row["text"]) for row in rows[:2]] == [(1.5, None), (None, "on")]
    assert math.isnan(rows[2]["value"])
    assert {row["pattern"] for row in rows} == {"car/M"}
    assert ddl(LONG).startswith("`ts_ns` BIGINT, `gateway` STRING")


def test_sums_are_those_of_a_loop() -> None:
    """Values out of order in time, with NaN, texts, pauses and numbers out of range."""
    chance = random.Random(3)
    values: list[Value] = [chance.choice((chance.gauss(5, 3), "on", float("nan"))) for _ in range(500)]
    ms = [float(chance.randrange(10**6)) for _ in values]
    made = block(values, ms, low=0.0, high=8.0)
    row = Sums(1500).row(made)
    in_order = sorted(zip(ms, range(500), values, strict=True))
    numbers = [one for one in values if isinstance(one, float) and one == one]
    pauses = [(b[0] - a[0], -n) for n, (a, b) in enumerate(pairwise(in_order))]
    mean = fmean(numbers)
    assert (row["rows"], row["numbers"]) == (500, len(numbers))
    assert row["nans"] == sum(isinstance(one, float) and one != one for one in values)
    assert (row["min"], row["max"]) == (min(numbers), max(numbers))
    assert row["mean"] == pytest.approx(mean)
    assert row["m2"] == pytest.approx(sum((one - mean) ** 2 for one in numbers))
    assert row["outside"] == sum(not 0 <= one <= 8 for one in numbers)
    assert row["gaps"] == sum(pause > 1500 for pause, _ in pauses)
    longest, place = max(pauses)
    assert row["longest_ns"] == longest * MS
    assert row["longest_from_ns"] == START_NS + int(in_order[-place][0]) * MS
    last = in_order[-1][2]
    assert row["last_text"] == (last if isinstance(last, str) else None)
    assert row["last"] == (last if isinstance(last, float) and last == last else None)


def test_sums_of_one_value_and_of_texts_alone() -> None:
    one = Sums(10).row(block([2.0], [0]))
    assert (one["gaps"], one["longest_ns"], one["m2"], one["outside"]) == (0, None, 0.0, None)
    text = Sums(10).row(block(["a", "b"], [0, 20])._replace(numbers=None))
    assert (text["numbers"], text["min"], text["gaps"], text["last_text"]) == (0, None, 1, "b")
    (batch,) = Sums(10)([block([2.0], [0])])
    assert batch.schema == schema(SUMS)
    assert not [*Sums(10)([])]


def test_windows_are_those_of_a_loop() -> None:
    chance = random.Random(4)
    values: list[Value] = [chance.choice((chance.gauss(5, 3), "on", float("nan"))) for _ in range(300)]
    ms = [float(chance.randrange(2000)) for _ in values]
    (found,) = Bins(50 * MS)([block(values, ms)])
    assert found.schema == schema(BINS)
    windows: dict[int, list[tuple[float, int, Value]]] = {}
    for place, (at, value) in enumerate(zip(ms, values, strict=True)):
        windows.setdefault((START_NS + round(at * MS)) // (50 * MS) * 50 * MS, []).append((at, place, value))
    assert [row["start_ns"] for row in found.to_pylist()] == sorted(windows)
    for row in found.to_pylist():
        some = sorted(windows[row["start_ns"]])
        numbers = [one for _, _, one in some if isinstance(one, float) and one == one]
        assert (row["rows"], row["numbers"]) == (len(some), len(numbers))
        assert row["min"] == min(numbers, default=None)
        assert row["max"] == max(numbers, default=None)
        assert row["sum"] == (pytest.approx(sum(numbers)) if numbers else None)
        last = some[-1][2]
        assert row["last_text"] == (last if isinstance(last, str) else None)


@pytest.mark.parametrize("work", [Sums(1500), Bins(MS), Episodes(1500)], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "values", [[1.7e308] * 3, [float("inf"), float("-inf")], [float("nan")] * 2, [5e-324]]
)
def test_numbers_at_the_end_of_their_range_are_no_warning(
    work: Work, values: list[Value], recwarn: pytest.WarningsRecorder
) -> None:
    with np.errstate(all="warn"):
        list(work([block(values, [0.0] * len(values))]))
    assert not recwarn.list


@pytest.mark.parametrize("work", [Long(), Sums(1500), Bins(MS)], ids=lambda one: type(one).__name__)
def test_many_signals_with_a_few_values_are_a_few_batches(work: Work) -> None:
    """Spark and Parquet take longer for a batch than for some hundred rows."""
    some = [block([float(number), "on"], [0, 5])._replace(signal=f"S{number}") for number in range(300)]
    found = [row for batch in work(iter(some)) for row in batch.to_pylist()]
    assert found == [row for one in some for batch in work([one]) for row in batch.to_pylist()]
    assert len(list(work(iter(some)))) == 1


def test_many_values_are_several_batches() -> None:
    some = [block([1.0] * 50_000, [0] * 50_000)] * 4
    assert [batch.num_rows for batch in Long()(some)] == [100_000, 100_000]
