"""Rates, last values and alerts as files arrive: nothing is lost or doubled, also over restarts."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from bus.client.socket import Bus
from bus.wire.pattern import Pattern
from capture import schema
from capture.compact import compact
from capture.files import capture_file, days_directory, listed, name_of
from capture.live import Live
from pipeline.analysis import last, rates, watch, watched
from pipeline.engine.session import LASTING
from pipeline.errors import PipelineError
from pipeline.input import read as capture
from pipeline.input import sample
from pipeline.jobs.opening import opened
from pipeline.jobs.watch import JOB, recording
from tests.capture.divided import divide
from tests.capture.recordings import Recording
from tests.helpers import alone
from tests.helpers.peers import wait
from tests.pipeline.analysis.watches import SECONDS, options, run
from tests.pipeline.engines import SHORT_LIVED
from tests.rigs import planted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    planted.generate(directory, planted.Plan(rows=9_000, sensors=20, takeovers=0, repeated=0.0))
    return directory


def land(whole: Path, here: Path, gateways: str) -> None:
    """Copy the files of the gateways whose names match into the watched directory."""
    for path in (whole / "capture").glob(f"date=*/gateway={gateways}/*"):
        target = here / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def rows_of(frame: "DataFrame") -> list[tuple[object, ...]]:
    return sorted(tuple(str(value) for value in row) for row in frame.collect())


def test_files_that_land_in_two_steps_add_up_to_what_a_batch_job_says(
    spark: "SparkSession", whole: Path, tmp_path: Path
) -> None:
    land(whole, tmp_path, "gw-[01]")
    where = capture.root(str(tmp_path))
    assert run(options(tmp_path / "out"), spark, where) == 0
    land(whole, tmp_path, "gw-[23]*")
    assert run(options(tmp_path / "out"), spark, where) == 0
    rows = capture.read(spark, where)
    assert rows_of(watched.rates(spark, tmp_path / "out", SECONDS)) == rows_of(rates.rates(rows, SECONDS))
    assert rows_of(last.nearest(watched.last(spark, tmp_path / "out"))) == rows_of(last.last(rows))


def test_what_was_read_is_not_read_again_when_it_is_compacted(
    spark: "SparkSession", whole: Path, tmp_path: Path
) -> None:
    land(whole, tmp_path, "gw-*")
    for path in listed(tmp_path):
        divide(path, 3)
    where = capture.root(str(tmp_path))
    assert run(options(tmp_path / "out"), spark, where) == 0
    before = rows_of(rates.rates(capture.read(spark, where), SECONDS))
    assert {(day.files, day.made) for day in compact(Path(where), "2999-01-01")} == {(3, 1)}
    assert run(options(tmp_path / "out"), spark, where) == 0
    assert rows_of(watched.rates(spark, tmp_path / "out", SECONDS)) == before
    assert rows_of(rates.rates(capture.read(spark, where), SECONDS)) == before


def test_rows_are_taken_from_journals_and_not_again_from_the_files_they_become(
    spark: "SparkSession", tmp_path: Path
) -> None:
    journal, output = Recording(tmp_path), tmp_path / "out"
    where = capture.followed(str(tmp_path))
    journal.add(5)
    assert run(options(output), spark, where) == 0
    assert taken(spark, output) == 5
    journal.add(3)
    journal.finish()
    assert run(options(output), spark, where) == 0
    assert run(options(output), spark, where) == 0
    assert taken(spark, output) == 8


def taken(spark: "SparkSession", output: Path) -> int:
    return sum(row.brought for row in watched.rates(spark, output, SECONDS).collect())


def test_a_live_bus_is_recorded_while_it_is_watched(tmp_path: Path) -> None:
    days = days_directory(tmp_path / "live")
    frames = range(20)
    with Bus(listen="tcp://127.0.0.1:0") as bus, recording(bus.urls[0], str(days)) as is_on:
        assert bus.wait_peers(1, 30.0)
        for number in frames:
            bus.send(["fridge"], b"%d" % number)
        wait(lambda: rows_in(days) >= len(frames), 30.0)
        assert is_on()
    wait(lambda: bool(listed(days)), 10.0)


def rows_in(days: Path) -> int:
    return sum(
        last - first + 1 for one in Live(days).held() for some in one.rows.values() for first, last in some
    )


def test_a_recorder_that_cannot_begin_ends_the_watch(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="--live: s3a://b/c: give a directory"):
        with recording("tcp://127.0.0.1:1", "s3a://b/c"):
            pass
    with recording("nonsense://", str(days_directory(tmp_path))) as is_on:
        wait(lambda: not is_on(), 30.0)


def test_a_wrong_directory_or_sink_is_said_before_spark_starts(tmp_path: Path) -> None:
    asked = options(tmp_path / "out", directory=str(tmp_path / "tpyo"))
    with pytest.raises(PipelineError, match="tpyo: there is no such directory"), opened(JOB, asked):
        pass
    assert JOB.prepare is not None
    with pytest.raises(
        PipelineError, match="--post: there is nothing to send; give the condition of an alert by --alert"
    ):
        JOB.prepare(options(tmp_path / "out", directory=str(tmp_path), post="http://a/b"))
    new = str(tmp_path / "live")
    JOB.prepare(options(tmp_path / "out", directory=new, live="tcp://127.0.0.1:1"))
    assert capture.followed(new) == str(days_directory(Path(new)))


def test_an_output_of_an_older_version_is_said(spark: "SparkSession", whole: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint/tables/sources/0").mkdir(parents=True)
    with pytest.raises(PipelineError, match="written by an older buscoupler"):
        run(options(tmp_path), spark, capture.root(str(whole)))


def test_a_batch_that_is_repeated_replaces_itself(spark: "SparkSession", whole: Path, tmp_path: Path) -> None:
    land(whole, tmp_path, "gw-*")
    where = capture.root(str(tmp_path))
    run(options(tmp_path / "out"), spark, where)
    done = sorted((tmp_path / "out/checkpoint/tables/commits").glob("[0-9]*"))
    for path in [done[-1], done[-1].with_name(f".{done[-1].name}.crc")]:  # as if killed before it was noted
        path.unlink(missing_ok=True)
    run(options(tmp_path / "out"), spark, where)
    rows = capture.read(spark, where)
    assert rows_of(watched.rates(spark, tmp_path / "out", SECONDS)) == rows_of(rates.rates(rows, SECONDS))


def test_alerts_go_onto_the_bus_once_each(spark: "SparkSession", whole: Path, tmp_path: Path) -> None:
    land(whole, tmp_path, "gw-*")
    where = capture.root(str(tmp_path))
    rule = "value >= 29.9 and bus <> 'trunk'"
    entered = capture.read(spark, where).where("dir = 0 and hub like 'bus %'")
    wanted = entered.where("cast(substr(cast(payload as string), 1, 6) as double) >= 29.9").count()
    assert wanted > 0
    with Bus(listen="tcp://127.0.0.1:0") as bus:
        for _ in range(2):
            run(options(tmp_path / "out", alert=rule, to=bus.urls[0]), spark, where)
        texts = [bus.recv(timeout=10.0).data for _ in range(wanted)]
        with pytest.raises(TimeoutError):
            bus.recv(timeout=0.2)
    assert len(set(texts)) == wanted


def test_a_rule_that_is_no_condition_is_one_clear_line(spark: "SparkSession", whole: Path) -> None:
    stream = watch.stream(spark, capture.root(str(whole)))
    with pytest.raises(PipelineError, match=r"--alert 'valve > 3': .*valve.*"):
        watch.alerts(stream, "valve > 3", 60.0, Pattern("alert"))


def file(directory: Path, number: int, *values: tuple[float, float]) -> Path:
    """Write a new file: (seconds, value) for each frame that came onto a bus."""
    metadata = {schema.META_VERSION: "1", schema.META_GATEWAY: "gw", schema.META_BOOT: "0"}
    common = {"boot": 0, "kind": 0, "hub": "bus plant", "bus": "plant", "peer": "a", "dir": 0, "count": 1,
              "verdict": 0, "message_bytes": 24, "type": 1, "tokens": [1, 2]}  # fmt: skip
    rows = [
        {**common, "cap_seq": number + n, "ts_ns": sample.START_NS + int(seconds * 1e9),
         "payload": f"{value} {seconds}".encode()}
        for n, (seconds, value) in enumerate(values)
    ]  # fmt: skip
    day = datetime.fromtimestamp(sample.START_NS / 1e9, UTC).strftime("%Y-%m-%d")
    path = capture_file(directory, day, "gw", name_of(0, number))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.arrow_schema(metadata)), path)
    return path


def raised(spark: "SparkSession", output: Path) -> list[str]:
    """Return the texts of all alerts, as Spark reads the finished files."""
    return sorted(row.text for row in spark.read.parquet(str(output / "alerts")).collect())


def test_what_comes_too_late_for_alerts_is_told_and_still_counts_in_the_rates(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    asked = options(output, alert="value > 30", late_s=20.0)
    file(tmp_path, 0, (100, 31), (100.1, 5))
    where = capture.root(str(tmp_path))
    run(asked, spark, where)
    assert "TOO LATE" not in capsys.readouterr().err
    file(tmp_path, 100, (60, 32), (61, 33), (62, 6), (90, 34))  # the watermark stands at 80
    run(asked, spark, where)
    assert ", 2 TOO LATE for alerts (see --late-s)" in capsys.readouterr().err  # though progress is off
    assert raised(spark, output) == ["31 100", "34 90"]
    found = watched.rates(spark, output, SECONDS).collect()
    assert sum(row.brought for row in found) == 6


def test_a_file_that_was_written_long_ago_is_taken_when_it_lands(
    spark: "SparkSession", tmp_path: Path
) -> None:
    file(tmp_path, 0, (100, 31))
    where = capture.root(str(tmp_path))
    run(options(tmp_path / "out"), spark, where)
    month_s = 30 * 86_400
    os.utime(file(tmp_path, 100, (60, 32)), (month_s, month_s))  # of a gateway that was away
    run(options(tmp_path / "out"), spark, where)
    found = watched.rates(spark, tmp_path / "out", SECONDS).collect()
    assert sum(row.brought for row in found) == 2


def test_a_damaged_file_ends_a_watch_with_its_name(spark: "SparkSession", tmp_path: Path) -> None:
    path = file(tmp_path, 0, (100, 31))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(PipelineError, match=rf"^tables: {path}: unreadable \("):
        run(options(tmp_path / "out"), spark, str(path.parents[2]))


def test_what_a_batch_raises_is_said_and_not_its_plan(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(tmp_path, 0, (100, 31))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watched, "merge", full)
    with pytest.raises(PipelineError, match=r"^tables: OSError: \[Errno 28\] No space left on device$"):
        run(options(tmp_path / "out"), spark, str(path.parents[2]))


def test_alerts_raise_no_alerts_and_long_ones_are_cut(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recorder hears the alerts of a first watch; and one frame is nearly as long as a frame can be."""
    alert = json.dumps(
        {"ts_ns": 1, "gateway": "gw", "bus": "plant", "tokens": [1], "text": "59", "value": 59}
    )
    path = file(tmp_path, 0, (100, 59), (101, 60), (102, 61))
    rows = pq.ParquetFile(path).read().to_pylist()
    rows[1] |= {"payload": alert.encode(), "tokens": list(Pattern("alert"))}
    rows[2] |= {"payload": b"61 " + b'"' * 1990}
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    with Bus(listen="tcp://127.0.0.1:0") as bus:
        asked = options(tmp_path / "out", alert="value > 58", to=bus.urls[0])
        run(asked, spark, capture.root(str(tmp_path)))
        found = sorted(
            (json.loads(bus.recv(timeout=10.0).data) for _ in range(2)), key=lambda one: one["value"]
        )
        with pytest.raises(TimeoutError):
            bus.recv(timeout=0.2)
    assert [(one["value"], one.get("cut")) for one in found] == [(59.0, None), (61.0, True)]
    assert found[1]["text"] == "61 " + '"' * 197
    assert "1 alerts CUT to fit into a frame" in capsys.readouterr().err


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


def java_of(pid: int) -> set[str]:
    """Return the words by which a process has started its Java."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return set(Path(f"/proc/{child}/cmdline").read_text().split("\0"))


def kill_within_a_batch(output: Path, where: str, rule: str) -> None:
    """Start a watch as a user does, and kill its processes when its first batch has begun to write."""
    words = ["pipeline", "watch", where, "--output", str(output), "--seconds", str(SECONDS), "--alert", rule]
    process = subprocess.Popen(
        [sys.executable, "-m", "buscoupler", *words], env=alone() | SHORT_LIVED, start_new_session=True
    )
    try:
        wait((output / "rates/batch=0").exists, 100.0)
        lasting = {f"{name}={value}" for name, value in LASTING.items()}
        assert {"-XX:+UseG1GC", *lasting} <= java_of(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
    assert (output / "checkpoint/tables/offsets/0").exists()
    assert not (output / "checkpoint/tables/commits/0").exists()


@pytest.mark.timeout(600)
def test_a_watch_that_was_killed_within_a_batch_loses_and_doubles_nothing(
    spark: "SparkSession", whole: Path, tmp_path: Path
) -> None:
    land(whole, tmp_path, "gw-[01]")
    where, output, rule = capture.root(str(tmp_path)), tmp_path / "out", "value >= 29 and bus <> 'trunk'"
    kill_within_a_batch(output, where, rule)
    land(whole, tmp_path, "gw-[23]*")
    run(options(output, alert=rule), spark, where)
    rows = capture.read(spark, where)
    assert rows_of(watched.rates(spark, output, SECONDS)) == rows_of(rates.rates(rows, SECONDS))
    assert rows_of(last.nearest(watched.last(spark, output))) == rows_of(last.last(rows))
    entered = rows.where("dir = 0 and hub like 'bus %'").selectExpr("cast(payload as string) AS text")
    wanted = sorted(row.text for row in entered.where("cast(substr(text, 1, 6) as double) >= 29").collect())
    assert wanted
    assert raised(spark, output) == wanted


def test_rows_that_are_too_late_are_added_up() -> None:
    progress = {"stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}]}
    assert "3 TOO LATE" in watch.late(progress)
    assert watch.late({"stateOperators": []}) == ""


def heard(lines: "Sequence[str]", batch: int) -> None:
    """Take alerts, as a user's own sink does (`--call`)."""
    HEARD.extend((batch, json.loads(line)["value"]) for line in lines)


HEARD: list[tuple[int, float]] = []


def test_alerts_go_to_a_function_a_program_or_a_webhook(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.write(tmp_path / "here")
    where = capture.root(str(tmp_path / "here"))
    due = [float(n) for n in range(sample.FRAMES) if n > 76]
    HEARD.clear()
    call = options(tmp_path / "a", alert="value > 76", call=f"{__name__}:heard")
    run(call, spark, where)
    assert [(0, value) for value in due] == HEARD
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/piped-$1\n")
    program.chmod(0o755)
    run(options(tmp_path / "b", alert="value > 76", pipe=str(program)), spark, where)
    piped = (tmp_path / "piped-0").read_text().splitlines()
    assert [json.loads(line)["value"] for line in piped] == due
    with pytest.raises(PipelineError, match=r"alerts: .*--post http://127.0.0.1:1/: .*refused"):
        run(options(tmp_path / "c", alert="value > 76", post="http://127.0.0.1:1/"), spark, where)
    with pytest.raises(PipelineError, match="--post and --pipe: alerts go to one place"):
        run(options(tmp_path / "d", alert="true", post="http://127.0.0.1:1/", pipe="true"), spark, where)
    with pytest.raises(PipelineError, match="--call nowhere:f: No module named 'nowhere'"):
        run(options(tmp_path / "d", alert="true", call="nowhere:f"), spark, where)
    capsys.readouterr()
    run(options(tmp_path / "a", show=True), spark, where)
    shown = capsys.readouterr().out
    assert shown.startswith("Last values:")
    assert "Rates, the newest first:" in shown


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


def divided(rows: "DataFrame", directory: Path, count: int) -> None:
    """Write rows as the rates of so many batches."""
    for number, part in enumerate(rates.seen(rows, SECONDS, 1).randomSplit([1.0] * count, 1)):
        part.coalesce(1).write.parquet(str(directory / f"batch={number}"))


def test_many_batches_become_one_and_each_counts_once_whenever_it_is_killed(
    spark: "SparkSession", whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = capture.read(spark, capture.root(str(whole)))
    due = rows_of(rates.rates(rows, SECONDS))
    directory, killed = tmp_path / "out" / "rates", tmp_path / "killed"
    divided(rows, directory, 6)
    assert len(watched.parts(directory)) == 6
    monkeypatch.setattr(watched, "MERGE_AT", 2)
    remove = shutil.rmtree
    copies = iter(range(100))

    def copied(path: Path, **how: Any) -> None:
        if Path(path).exists():
            shutil.copytree(tmp_path / "out", killed / str(next(copies)))
            remove(path, **how)

    monkeypatch.setattr(shutil, "rmtree", copied)
    watched.merge(spark, directory, 5, watched.summed)
    monkeypatch.undo()
    assert list(watched.batches(directory)) == [3, 4, 5]  # of four batches, of one, and the newest
    for one in (tmp_path / "out", *killed.iterdir()):  # as it was before each removal
        assert rows_of(watched.rates(spark, one, SECONDS)) == due
    assert next(copies) > 3


def test_what_a_merge_rewrites_is_bounded_and_so_is_the_number_of_directories(
    spark: "SparkSession", whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = capture.read(spark, capture.root(str(whole)))
    directory, added = tmp_path / "rates", tmp_path / "added"
    divided(rows, added, 1)
    size = sum(path.stat().st_size for path in added.glob("*/*.parquet"))
    monkeypatch.setattr(watched, "MERGE_AT", 2)
    monkeypatch.setattr(watched, "MERGED_BYTES", 5 * size)
    rewritten = []

    def joined(some: "DataFrame") -> "DataFrame":
        rewritten.append(len(some.inputFiles()))
        return some

    for number in range(17):
        shutil.copytree(added / "batch=0", directory / f"batch={number}")
        watched.merge(spark, directory, number, joined)
    assert len(rewritten) > 8
    assert max(rewritten) == 2
    found = watched.parts(directory)
    assert (
        spark.read.parquet(*map(str, found.values())).count() == 17 * spark.read.parquet(str(added)).count()
    )
    sizes = [sum(path.stat().st_size for path in one.glob("*.parquet")) for one in found.values()]
    assert max(sizes) < 6 * size
    assert len(found) < 9


def test_nothing_is_rewritten_where_directories_cannot_change_places(
    spark: "SparkSession", whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided(capture.read(spark, capture.root(str(whole))), tmp_path, 4)
    monkeypatch.setattr(watched, "MERGE_AT", 2)

    def refused(one: Path, other: Path) -> None:
        raise OSError("this file system cannot exchange directories")

    monkeypatch.setattr(watched, "exchange", refused)
    watched.merge(spark, tmp_path, 3, lambda rows: pytest.fail("it was begun"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"batch={number}" for number in range(4)]


def test_what_an_older_version_merged_stands_for_all_before(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"batch={number}").mkdir()
        (tmp_path / f"batch={number}" / "_SUCCESS").touch()
    (tmp_path / "batch=2" / "_MERGED").touch()
    assert list(watched.parts(tmp_path)) == [2, 3]
