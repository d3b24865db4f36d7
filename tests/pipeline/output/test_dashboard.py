"""The queries of the dashboard for Grafana (`examples/grafana`), by DuckDB, on what a watch has written."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

import duckdb

from pipeline.analysis import last, rates
from pipeline.input import read as capture
from tests.helpers import ROOT
from tests.pipeline.analysis.watches import options, run
from tests.rigs import planted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DASHBOARD = ROOT / "examples" / "grafana" / "watch.json"
SECONDS = 2


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("plant")
    planted.generate(directory, planted.Plan(rows=9_000, sensors=20, takeovers=0, repeated=0.0))
    return capture.root(str(directory))


@pytest.fixture(scope="module")
def output(spark: "SparkSession", where: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("watch")
    assert run(options(directory, seconds=float(SECONDS), alert="value > 29"), spark, where) == 0
    return directory


def panel(title: str, output: Path) -> list[tuple[Any, ...]]:
    """Run the query of a panel as Grafana does, with its variables filled in, for all times."""
    panels = {panel["title"]: panel for panel in json.loads(DASHBOARD.read_text())["panels"]}
    sql = panels[title]["targets"][0]["rawSql"]
    values = {"$directory": output, "$seconds": SECONDS, "$__from": 0, "$__to": 1 << 52}
    for name, value in values.items():
        sql = sql.replace(name, str(value))
    found: list[tuple[Any, ...]] = duckdb.sql(sql).fetchall()
    return found


@pytest.mark.parametrize(("title", "measure"), [("Frames", ""), ("Bytes", "_bytes")])
def test_rates_are_those_of_the_job(
    spark: "SparkSession", where: str, output: Path, title: str, measure: str
) -> None:
    due = rates.rates(capture.read(spark, where), SECONDS).collect()
    of_job = sum(max(row[f"brought{measure}"], row[f"put{measure}"]) for row in due)
    found = panel(f"{title} a second, by segment", output)
    assert sum(row[2] for row in found) * SECONDS == pytest.approx(of_job)
    assert {row[1] for row in found} == {row.bus for row in due}


def test_last_values_are_those_of_the_job(spark: "SparkSession", where: str, output: Path) -> None:
    due = {("/".join(map(str, row.tokens)), bytes(row.payload).decode(), row.bus)
           for row in last.last(capture.read(spark, where)).collect()}  # fmt: skip
    assert {(row[3], row[4], row[2]) for row in panel("Last values", output)} == due


def test_alerts_are_the_newest(spark: "SparkSession", output: Path) -> None:
    found = panel("Alerts", output)
    assert found == sorted(found, key=lambda row: row[0], reverse=True)
    assert all(row[5] > 29 for row in found)
    assert 0 < len(found) <= 200


def test_a_batch_counts_when_it_is_complete_and_a_merged_one_for_those_that_it_names(
    output: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(output, tmp_path / "copy"))
    title, added = "Frames a second, by segment", copy / "rates" / "batch=7"
    before = panel(title, copy)
    shutil.copytree(copy / "rates" / "batch=0", added, ignore=shutil.ignore_patterns("*_SUCCESS*"))
    assert panel(title, copy) == before
    (added / "_SUCCESS").touch()
    assert panel(title, copy) == [(time, bus, 2 * value) for time, bus, value in before]
    (added / "_MERGED-1-1").touch()  # batches 1 to 7
    assert panel(title, copy) == [(time, bus, 2 * value) for time, bus, value in before]
    (added / "_MERGED-1-1").rename(added / "_MERGED-2-0")
    assert panel(title, copy) == before
    (added / "_MERGED-2-0").rename(added / "_MERGED")  # of an older version
    assert panel(title, copy) == before


def test_a_value_that_is_no_text_is_shown_in_hexadecimal() -> None:
    assert duckdb.sql(r"SELECT coalesce(try(decode('\xFF'::BLOB)), hex('\xFF'::BLOB))").fetchall() == [
        ("FF",)
    ]
    assert "coalesce(try(decode(payload)), hex(payload))" in DASHBOARD.read_text()
