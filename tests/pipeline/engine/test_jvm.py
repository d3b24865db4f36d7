"""The Java of Spark: its Python workers import what is installed, which is compiled already."""

from typing import TYPE_CHECKING

import pytest

from pipeline.engine import jvm

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession


def places(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Yield from where a worker has imported Spark."""
    import pyarrow as pa
    import pyspark

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__]})


def test_a_worker_does_not_compile_spark(spark: "SparkSession") -> None:
    import pyspark

    assert [row.place for row in spark.range(1).mapInArrow(places, "place string").collect()] == [
        pyspark.__file__
    ]


def test_java_has_no_home_of_another_spark(tmp_path: "Path", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    log = tmp_path / "log"
    process = jvm.started(["env"], log, {"MORE": "1"})
    assert process.wait(30) == 0
    names = {line.partition("=")[0] for line in log.read_text().splitlines()}
    assert "SPARK_HOME" not in names
    assert {"MORE", "SPARK_CONNECT_MODE", "PATH"} <= names
