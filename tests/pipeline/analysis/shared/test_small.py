"""A small table does what a job asks of a DataFrame, in the same order."""

import pytest

pytest.importorskip("pyspark")

from pipeline.analysis.shared.small import Small

TABLE = Small({"n": int, "name": str}, [(2, "b"), (1, None), (2, "a")])


def test_rows_have_the_names_of_the_columns() -> None:
    assert [row.asDict() for row in TABLE.limit(1).collect()] == [{"n": 2, "name": "b"}]
    assert Small({"n": int}, []).collect() == []


def test_it_is_sorted_as_spark_sorts_what_is_missing_first() -> None:
    assert TABLE.orderBy("name").rows == [(1, None), (2, "a"), (2, "b")]
    assert TABLE.orderBy("n", "name").rows == [(1, None), (2, "a"), (2, "b")]


def test_columns_are_chosen_by_name() -> None:
    assert TABLE.select("name").rows == [("b",), (None,), ("a",)]
    assert TABLE.count() == 3
