"""Alerts of a watch: each goes out once, where it is asked to go, and what is late or too long is told."""

import json
import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from bus.client.socket import Bus
from bus.wire.pattern import Pattern
from pipeline.analysis import watch, watched
from pipeline.errors import PipelineError
from pipeline.input import read as capture
from pipeline.input import sample
from pipeline.jobs.watch import chosen
from tests.pipeline.analysis.watches import SECONDS, file, land, options, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def alert_and_long_one(directory: Path) -> None:
    """Write a file with a frame, an alert that a recorder has heard, and a frame that is nearly as long as
    one can be."""
    alert = {"ts_ns": 60, "gateway": "gw", "bus": "plant", "tokens": [1], "text": "59", "value": 59}
    path = file(directory, 0, (100, 59), (101, 60), (102, 61))
    rows = pq.ParquetFile(path).read().to_pylist()
    rows[1] |= {"payload": json.dumps(alert).encode(), "tokens": list(Pattern("alert"))}
    rows[2] |= {"payload": b"61 " + b'"' * 1990}
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)


def test_alerts_go_onto_the_bus_once_each_and_raise_none_and_long_ones_are_cut(
    spark: "SparkSession", whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(whole, tmp_path, "gw-*")
    where = capture.root(str(tmp_path))
    entered = capture.read(spark, where).where("dir = 0 and hub like 'bus %'")
    wanted = entered.where("cast(substr(cast(payload as string), 1, 6) as double) >= 29.9").count()
    assert wanted > 0
    with Bus(listen="tcp://127.0.0.1:0") as bus:
        asked = options(tmp_path / "out", alert="value >= 29.9 and bus <> 'trunk'", to=bus.urls[0])
        run(asked, spark, where)
        texts = [bus.recv(timeout=10.0).data for _ in range(wanted)]
        alert_and_long_one(tmp_path)
        run(asked, spark, where)
        found = sorted(
            (json.loads(bus.recv(timeout=10.0).data) for _ in range(2)), key=lambda one: one["value"]
        )
        with pytest.raises(TimeoutError):
            bus.recv(timeout=0.2)
    assert len(set(texts)) == wanted
    assert [(one["value"], one.get("cut")) for one in found] == [(59.0, None), (61.0, True)]
    assert found[1]["text"] == "61 " + '"' * 197
    assert "1 alerts CUT to fit into a frame" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("21.5 degC", 21.5), ("1e-05", 1e-05), ('{"v": -4.2E3}', -4200), ("t=+7", 7), (".5", 0.5),
        ("-.5 V", -0.5),
        ("id 3e8a", 3), ("3e81x", 3), ("v2.5.1", 2.5), ("a.7", 7), ("5e", 5), ("12,5", 12),
    ],
)  # fmt: skip
def test_the_first_number_of_a_text_is_whole(text: str, number: float) -> None:
    found = re.search(watch.NUMBER, text)
    assert found is not None
    assert float(found[0]) == number


def test_a_rule_that_is_no_condition_is_one_clear_line(spark: "SparkSession", whole: Path) -> None:
    stream = watch.stream(spark, capture.root(str(whole)))
    with pytest.raises(PipelineError, match=r"--alert 'valve > 3': .*valve.*"):
        watch.alerts(stream, "valve > 3", 60.0, Pattern("alert"))


def heard(lines: "Sequence[str]", batch: int) -> None:
    """Take alerts, as a user's own sink does (`--call`)."""
    HEARD.extend((batch, json.loads(line)["text"]) for line in lines)


HEARD: list[tuple[int, str]] = []


def test_what_comes_too_late_for_a_function_s_alerts_is_told_and_still_counts_in_the_rates(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    HEARD.clear()
    output = tmp_path / "out"
    asked = options(output, alert="value > 30", late_s=20.0, call=f"{__name__}:heard")
    file(tmp_path, 0, (100, 31), (100.1, 5))
    where = capture.root(str(tmp_path))
    run(asked, spark, where)
    assert "TOO LATE" not in capsys.readouterr().err
    assert HEARD == [(0, "31 100")]
    file(tmp_path, 100, (60, 32), (61, 33), (62, 6), (90, 34))  # the watermark stands at 80
    run(asked, spark, where)
    assert ", 2 TOO LATE for alerts (see --late-s)" in capsys.readouterr().err  # though progress is off
    assert [text for _, text in HEARD] == ["31 100", "34 90"]
    found = watched.rates(spark, output, SECONDS).collect()
    assert sum(row.brought for row in found) == 6
    run(options(output, show=True), spark, where)
    shown = capsys.readouterr().out
    assert shown.startswith("Last values:")
    assert "Rates, the newest first:" in shown


def test_a_clock_that_is_ahead_makes_no_alert_of_others_too_late(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    HEARD.clear()
    asked = options(tmp_path / "out", alert="value > 30", call=f"{__name__}:heard")
    now_s = round(time.time() - sample.START_NS / 1e9)
    file(tmp_path, 0, (now_s + 36_000, 31))
    where = capture.root(str(tmp_path))
    run(asked, spark, where)
    file(tmp_path, 100, (now_s, 32))
    run(asked, spark, where)
    assert [text.split()[0] for _, text in HEARD] == ["31", "32"]
    assert "TOO LATE" not in capsys.readouterr().err


def test_many_batches_of_alerts_become_one(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "MERGE_AT", 2)
    write = watch.to_files(tmp_path)
    found = spark.createDataFrame(
        [(f"3{number} {number}", number) for number in range(4)], "text string, n int"
    )
    for number in range(5):  # the last has none
        write(found.where(f"n = {number}"), number)
    alerts = watched.alerts(spark, tmp_path)
    assert alerts is not None
    assert sorted(row.text for row in alerts.collect()) == ["30 0", "31 1", "32 2", "33 3"]
    assert list(watched.batches(tmp_path / "alerts")) == [1, 2, 3]


def test_an_alert_of_many_tokens_fits(spark: "SparkSession") -> None:
    many = spark.createDataFrame(
        [(5, "gw", "plant", [4_000_000_000] * 255, "x", 1.0)],
        "ts_ns bigint, gateway string, bus string, tokens array<bigint>, text string, value double",
    )
    (row,) = watch.fitted(many).collect()
    assert (json.loads(row.payload), row.cut) == ({"ts_ns": 5, "value": 1.0, "cut": True}, True)


def test_rows_that_are_too_late_are_added_up() -> None:
    progress = {"stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}]}
    assert "3 TOO LATE" in watch.late(progress)
    assert watch.late({"stateOperators": []}) == ""


def test_alerts_go_to_a_program_or_a_webhook(spark: "SparkSession", tmp_path: Path) -> None:
    due = [77.0, 78.0, 79.0]
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/piped-$1\n")
    program.chmod(0o755)
    sink = chosen(options(tmp_path / "b", alert="true", pipe=str(program)))
    assert sink is not None
    found = spark.createDataFrame([*enumerate(due)][::-1], "ts_ns bigint, value double")
    watch.to_sink(sink)(found, 0)  # as each batch of a stream is given to a function
    piped = (tmp_path / "piped-0").read_text().splitlines()
    assert [json.loads(line)["value"] for line in piped] == due
    sample.write(tmp_path / "here")
    where = capture.root(str(tmp_path / "here"))
    with pytest.raises(PipelineError, match=r"alerts: .*--post http://127.0.0.1:1/: .*refused"):
        run(options(tmp_path / "c", alert="value > 76", post="http://127.0.0.1:1/"), spark, where)
    with pytest.raises(PipelineError, match="--post and --pipe: alerts go to one place"):
        run(options(tmp_path / "d", alert="true", post="http://127.0.0.1:1/", pipe="true"), spark, where)
    with pytest.raises(PipelineError, match="--call nowhere:f: No module named 'nowhere'"):
        run(options(tmp_path / "d", alert="true", call="nowhere:f"), spark, where)


def test_the_database_of_the_page_takes_a_batch_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text()
    program = page[page.index("import json, sqlite3") :].partition("```")[0]
    found: dict[str, Any] = {}
    exec(program, found)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        found["to_database"]([json.dumps({"ts_ns": n, "bus": "plant", "value": 1.5}) for n in range(3)], 7)
    with sqlite3.connect("alerts.db") as base:
        assert base.execute("SELECT count(*), sum(value) FROM alerts").fetchall() == [(3, 4.5)]
