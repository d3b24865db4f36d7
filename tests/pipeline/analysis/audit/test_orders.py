"""Rows in the order of several columns: numpy's own order of columns says the same."""

from itertools import pairwise

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import numpy as np

from pipeline.analysis.audit.orders import groups, ordered

ROWS = 500
WIDE = np.iinfo(np.int64)
RANDOM = np.random.default_rng(7)
COLUMNS = {
    "few": RANDOM.integers(-3, 3, ROWS),
    "flags": RANDOM.integers(0, 2, ROWS).astype(bool),
    "one": np.full(ROWS, 5),
    "times": 1_780_000_000_000_000_000 + RANDOM.integers(0, 40, ROWS) * 1_000_000_000,
    "more times": 1_780_000_000_000_000_000 + RANDOM.integers(0, 4, ROWS) * (1 << 50),
    "hashes": RANDOM.choice([WIDE.min, -1, 0, 3, WIDE.max], ROWS),
}


@pytest.mark.parametrize(
    "names",
    [[name] for name in COLUMNS]
    + [
        list(COLUMNS),
        list(COLUMNS)[::-1],
        ["hashes", "times", "few"],
        ["one", "one"],
        ["more times", "times", "few"],
    ],
)
def test_rows_are_in_the_order_of_columns_and_equal_rows_as_they_were(names: list[str]) -> None:
    columns = [COLUMNS[name] for name in names]
    assert ordered(*columns).tolist() == np.lexsort(columns[::-1]).tolist()


def test_groups_begin_where_a_column_changes() -> None:
    columns = [COLUMNS[name] for name in ("hashes", "times", "flags", "more times")]
    order, begins = groups(*columns)
    rows = [tuple(column[row] for column in columns) for row in order]
    changes = [n for n, (one, other) in enumerate(pairwise(rows), 1) if one != other]
    assert begins.tolist() == [0, *changes]
    assert 1 < len(changes) < ROWS - 1


def test_no_rows_and_one_row_have_an_order() -> None:
    nothing, one = np.zeros(0, np.int64), np.array([WIDE.min])
    assert [part.tolist() for part in groups(nothing, nothing)] == [[], []]
    assert [part.tolist() for part in groups(one, one)] == [[0], [0]]
