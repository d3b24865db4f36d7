"""The audit in SQL, with which the benchmark compares, finds what ours finds; and Spark's work is counted."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import functions

from benchmarks.pipeline import sql
from benchmarks.pipeline.work import counted
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.shared import drifts, inventory
from pipeline.cache import release
from pipeline.engine.choice import SAIL, VARIABLE
from pipeline.input import read as capture
from tests.rigs.planted import CAPTURES, generate, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ["kind", "stage", "segment", "gateway", "hub", "count"]


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("sort", CAPTURES)
def test_both_find_the_same_faults(spark: "SparkSession", tmp_path: Path, sort: str) -> None:
    release()
    generate(tmp_path, plan_of(sort, 30_000, seed=7, lost=0.005, doubled=0.003, echoed=0.002))
    ours = audit(capture.read(spark, capture.root(str(tmp_path)))).summary.select(*COLUMNS).collect()
    db = sql.connect(tmp_path, 2, "1GB", tmp_path / "spilled")
    sql.audit(db)
    theirs = db.execute(f"SELECT {', '.join(COLUMNS)} FROM summary").fetchall()
    assert len(ours) > 10
    assert sorted(map(repr, map(tuple, ours))) == sorted(map(repr, theirs))


@pytest.mark.skipif(os.environ.get(VARIABLE) == SAIL, reason="Sail counts nothing")
def test_an_audit_takes_five_jobs_and_two_passes(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drifts, "LONG_NS", 1)  # as in a long capture, clocks may have drifted
    truth = generate(tmp_path, plan_of("all", 10_000, lost=0.02, rate=10.0))
    rows = capture.read(spark, capture.root(str(tmp_path)))
    entries = inventory.take(rows, truth.rows)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    work = counted(spark, lambda: audit(rows, entries=entries).summary.collect())
    spark.conf.unset("spark.sql.adaptive.enabled")
    assert work.jobs <= 5 - 1  # less that of the inventory
    assert 2 * truth.rows <= work.read < 2.1 * truth.rows


@pytest.mark.skipif(os.environ.get(VARIABLE) == SAIL, reason="Sail counts nothing")
def test_the_work_of_spark_is_counted(spark: "SparkSession", tmp_path: Path) -> None:
    generate(tmp_path, plan_of("all", 10_000))
    rows = capture.read(spark, capture.root(str(tmp_path)))
    every = rows.count()
    hubs = rows.select("hub").distinct()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    work = counted(
        spark, lambda: rows.join(functions.broadcast(hubs), "hub").groupBy("hub").count().collect()
    )
    spark.conf.unset("spark.sql.adaptive.enabled")
    number = hubs.count()
    assert work.read == 2 * every
    assert (work.collected, work.broadcast) == (number, number)
    assert 1 <= work.jobs <= 4
