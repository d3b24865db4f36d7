"""The quality of captures: holes, rows that are there twice, clocks that went back, files that come late."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from capture.files import boot_of, listed
from pipeline.analysis.quality import completeness, flaws
from pipeline.analysis.shared import inventory
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.input import sample
from pipeline.input.late import lateness
from pipeline.input.sound import look
from pipeline.input.span import WHOLE
from pipeline.output import textfile
from tests.helpers import ROOT
from tests.pipeline.analysis.hand_made import MS, RX, START_NS, Capture, frame

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.engines(SPARK, SAIL)
HOUR_MS = 3_600_000


def busy(capture: Capture, gateway: str, frames: range, ahead_ms: int = 0) -> None:
    for n in frames:
        capture.seen(n * 10 + ahead_ms, gateway, "bus plant", "plant", RX, frame("a", str(n)))


def found(spark: "SparkSession", capture: Capture) -> "list[Row]":
    rows = capture.rows(spark)
    return flaws(rows, inventory.take(rows)).collect()


def test_a_capture_without_flaws(spark: "SparkSession") -> None:
    capture = Capture()
    busy(capture, "gw-a", range(300))
    busy(capture, "gw-b", range(100))
    assert found(spark, capture) == []


def test_no_job_counts_distinct_values_for_which_an_engine_keeps_each_row() -> None:
    counted = re.compile(r"count_?distinct|count\(distinct", re.IGNORECASE)
    paths = (ROOT / "pipeline").rglob("*.py")
    assert [str(path) for path in paths if counted.search(path.read_text())] == []


def test_holes_copies_and_a_clock_that_went_back_are_named(spark: "SparkSession") -> None:
    capture = Capture()
    busy(capture, "gw-a", range(100))
    capture.missed(1000, "gw-a", 7)
    busy(capture, "gw-a", range(110, 300))
    busy(capture, "gw-b", range(200), ahead_ms=HOUR_MS)
    busy(capture, "gw-b", range(200, 400))  # its clock was set
    busy(capture, "gw-c", range(100))
    capture.packets += [one for one in capture.packets if one.gateway == "gw-c"][:30]
    rows = {row.kind: row for row in found(spark, capture)}
    assert {kind: row.gateway for kind, row in rows.items()} == {
        "hole": "gw-a", "clock back": "gw-b", "doubled": "gw-c"
    }  # fmt: skip
    assert rows["hole"].from_ns == START_NS + 990 * MS
    assert rows["doubled"].n == 30
    assert rows["clock back"].to_ns == START_NS + (HOUR_MS + 1990) * MS
    assert rows["clock back"].n == (HOUR_MS + 1990 - 2000) * MS


def test_days_are_complete_in_whatever_order_rows_come(spark: "SparkSession") -> None:
    """Rows of hubs alternate at midnight, and a clock goes back into the day before."""
    midnight_ms = (-(START_NS // MS)) % (24 * HOUR_MS)
    capture = Capture(goes_on=True)
    for n in (*range(-50, -2), 1, -2, 0, -1, *range(2, 150)):
        capture.seen(midnight_ms + n, "gw-a", "bus plant", "plant", RX, frame("a", str(n)))
    busy(capture, "gw-b", range(100), ahead_ms=midnight_ms)
    capture.missed(midnight_ms + 1000, "gw-b", 4)
    busy(capture, "gw-b", range(100), ahead_ms=midnight_ms - HOUR_MS)
    busy(capture, "gw-c", range(5), ahead_ms=midnight_ms - HOUR_MS)
    capture.missed(midnight_ms - HOUR_MS + 50, "gw-c", 2)
    busy(capture, "gw-c", range(5), ahead_ms=midnight_ms)
    rows = completeness(capture.rows(spark)).collect()
    assert [(row.gateway, row.rows, row.missing) for row in rows] == [
        ("gw-a", 50, 0), ("gw-b", 100, 0), ("gw-c", 6, 2), ("gw-a", 150, 0), ("gw-b", 101, 4), ("gw-c", 5, 0),
    ]  # fmt: skip
    assert all(0 < row.complete <= 1 for row in rows)


def test_the_completeness_of_each_day(spark: "SparkSession", tmp_path: Path) -> None:
    capture = Capture(goes_on=True)
    busy(capture, "gw-a", range(64))
    busy(capture, "gw-b", range(100))
    capture.missed(24 * HOUR_MS, "gw-a", 16)  # of which a row tells
    busy(capture, "gw-a", range(64), ahead_ms=24 * HOUR_MS)
    rows = completeness(capture.rows(spark)).collect()
    days = sorted({row.day for row in rows})
    assert [(row.gateway, row.day, row.rows, row.missing, row.complete) for row in rows] == [
        ("gw-a", days[0], 64, 0, 1.0), ("gw-b", days[0], 100, 0, 1.0), ("gw-a", days[1], 65, 16, 65 / 81),
    ]  # fmt: skip
    assert rows[0].from_ns == START_NS
    textfile.write(str(tmp_path / "capture.prom"), rows)
    assert (
        f'buscoupler_capture_rows_missing{{day="{days[1]}",gateway="gw-a"}} 16.0'
        in (tmp_path / "capture.prom").read_text()
    )
    with pytest.raises(PipelineError, match="No such file"):
        textfile.write(str(tmp_path / "none" / "x.prom"), rows)


def test_the_lateness_of_files(tmp_path: Path) -> None:
    sample.write(tmp_path)
    path = listed(tmp_path)[0]
    came_ns = sample.START_NS + (sample.FRAMES - 1) * 10 * MS  # of the last row, which is lost
    os.utime(path, ns=(came_ns + 90 * 1000 * MS,) * 2)
    newest, run = look(tmp_path, thorough=False).newest, ("gw", int(boot_of(path)))
    assert lateness(newest, WHOLE, {run}) == [("gw", 1, 90.0, 90.0, path.name)]
    assert lateness({}, WHOLE, {run}) == []  # as of a capture by URL
    assert lateness(newest, WHOLE, {("gw", 1), ("other", run[1])}) == []  # as of a log that was imported
