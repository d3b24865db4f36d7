"""Rates, last values and alerts as segments land: nothing lost, nothing doubled, over restarts too."""

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from benchmarks import planted
from bus.socket import Bus
from pipeline import capture, last, rates, watch
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS = 1.0


def options(output: Path, **more: object) -> argparse.Namespace:
    common = {"output": str(output), "alert": None, "to": None, "pattern": "alert", "seconds": SECONDS}
    return argparse.Namespace(**{**common, "late_s": 600.0, "once": True, "quiet": True, **more})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    planted.generate(directory, planted.Plan(rows=9_000, sensors=20, takeovers=0, repeated=0.0))
    return directory


def land(whole: Path, here: Path, gateways: str) -> None:
    """The segments of the gateways whose names match come to lie where they are watched."""
    for path in (whole / "capture").glob(f"date=*/gateway={gateways}/*"):
        target = here / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def rows_of(frame: "DataFrame") -> list[tuple[object, ...]]:
    return sorted(tuple(str(value) for value in row) for row in frame.collect())


def test_segments_that_land_in_two_steps_add_up_to_what_a_batch_job_says(
    spark: "SparkSession", whole: Path, tmp_path: Path
) -> None:
    land(whole, tmp_path, "gw-[01]")
    where = capture.root(str(tmp_path))
    assert watch.run(options(tmp_path / "out"), spark, where) == 0
    land(whole, tmp_path, "gw-[23]*")
    assert watch.run(options(tmp_path / "out"), spark, where) == 0
    rows = capture.read(spark, where)
    assert rows_of(watch.read_rates(spark, tmp_path / "out", SECONDS)) == rows_of(rates.rates(rows, SECONDS))
    assert rows_of(last.nearest(watch.read_last(spark, tmp_path / "out"))) == rows_of(last.last(rows))


def test_a_batch_that_is_repeated_replaces_itself(spark: "SparkSession", whole: Path, tmp_path: Path) -> None:
    land(whole, tmp_path, "gw-*")
    where = capture.root(str(tmp_path))
    watch.run(options(tmp_path / "out"), spark, where)
    done = sorted((tmp_path / "out/checkpoint/tables/commits").glob("[0-9]*"))
    for path in [done[-1], done[-1].with_name(f".{done[-1].name}.crc")]:  # as if killed before it was noted
        path.unlink(missing_ok=True)
    watch.run(options(tmp_path / "out"), spark, where)
    rows = capture.read(spark, where)
    assert rows_of(watch.read_rates(spark, tmp_path / "out", SECONDS)) == rows_of(rates.rates(rows, SECONDS))


def test_alerts_go_onto_the_bus_once_each(spark: "SparkSession", whole: Path, tmp_path: Path) -> None:
    land(whole, tmp_path, "gw-*")
    where = capture.root(str(tmp_path))
    rule = "value >= 29.9 and bus <> 'trunk'"
    entered = capture.read(spark, where).where("dir = 0 and hub like 'bus %'")
    wanted = entered.where("cast(substr(cast(payload as string), 1, 6) as double) >= 29.9").count()
    assert wanted > 0
    with Bus(listen="tcp://127.0.0.1:0") as bus:
        for _ in range(2):
            watch.run(options(tmp_path / "out", alert=rule, to=bus.urls[0]), spark, where)
        texts = [bus.recv(timeout=10.0).data for _ in range(wanted)]
        with pytest.raises(TimeoutError):
            bus.recv(timeout=0.2)
    assert len(set(texts)) == wanted


def test_a_rule_that_is_no_condition_is_one_clear_line(spark: "SparkSession", whole: Path) -> None:
    stream = watch.stream(spark, capture.root(str(whole)))
    with pytest.raises(PipelineError, match=r"--alert 'valve > 3': .*valve.*"):
        watch.alerts(stream, "valve > 3", 60.0)


def test_what_comes_too_late_for_alerts_is_told() -> None:
    progress = {"stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}]}
    assert "3 TOO LATE" in watch.late(progress)
    assert watch.late({"stateOperators": []}) == ""
