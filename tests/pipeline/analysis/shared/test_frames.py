"""A small table of values, as an engine gets it."""

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pipeline.analysis.shared.frames import local_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_small_table_loads_no_pandas(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    table = local_table(spark, {"name": str, "n": int}, [("a", 1), ("b", None)])
    assert [tuple(row) for row in table.orderBy("name").collect()] == [("a", 1), ("b", None)]
    assert "pandas" not in sys.modules
