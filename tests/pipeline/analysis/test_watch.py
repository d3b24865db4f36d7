"""Rates and last values as files arrive: nothing is lost or doubled, also over restarts."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")


from bus.client.socket import Bus
from capture.compact import compact
from capture.files import days_directory, gateway_of, listed
from capture.live import Live
from pipeline.analysis import last, rates, watched
from pipeline.engine.session import LASTING
from pipeline.errors import PipelineError
from pipeline.input import read as capture
from pipeline.jobs.opening import opened
from pipeline.jobs.watch import JOB, recording
from tests.capture.divided import divide
from tests.capture.recordings import COMMON, Recording
from tests.helpers import alone
from tests.helpers.peers import wait
from tests.pipeline.analysis.watches import SECONDS, file, land, options, raised, run
from tests.pipeline.engines import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Rows = list[tuple[str, ...]]


def rows_of(frame: "DataFrame") -> Rows:
    return sorted(tuple(str(value) for value in row) for row in frame.collect())


JOURNALED: Final = str(COMMON["bus"])
"""The bus of the rows of a journal."""


def of_files(rates: Rows) -> Rows:
    """Return the rates without those of a journal's rows."""
    return [row for row in rates if row[1] != JOURNALED]


class Step(NamedTuple):
    """The rates and the last values after a step."""

    rates: Rows
    last: Rows


class Course(NamedTuple):
    """A recorder's directory that was watched in steps: files land, and some are compacted; a journal grows
    and becomes a file; and the last batch is repeated.

    `due` is what batch jobs find at the end, `before` and `after` are the rates that one finds before and
    after those files were compacted.
    """

    first: Step
    second: Step
    repeated: Step
    due: Step
    before: Rows
    after: Rows


@pytest.fixture(scope="module")
def course(spark: "SparkSession", whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Of two gateways in the first step and all in the second. A stream takes seconds to start."""
    place = tmp_path_factory.mktemp("course")
    where, output, journal = capture.followed(str(place)), place / "out", Recording(place)
    steps: list[Step] = []

    def step() -> None:
        assert run(options(output), spark, where) == 0
        found = watched.rates(spark, output, SECONDS), last.nearest(watched.last(spark, output))
        steps.append(Step(*map(rows_of, found)))

    land(whole, place, "gw-[01]")
    for path in listed(place):
        divide(path, 3)
    journal.add(5)
    step()
    before = rows_of(rates.rates(capture.read(spark, where), SECONDS))
    assert {(day.files, day.made) for day in compact(Path(where), "2999-01-01")} == {(3, 1)}
    after = rows_of(rates.rates(capture.read(spark, where), SECONDS))
    land(whole, place, "gw-[23]*")
    written_long_ago(place, "gw-2")
    journal.add(3)
    journal.finish()
    step()
    forget_the_last_batch(output)
    step()
    rows = capture.read(spark, where)
    due = Step(rows_of(rates.rates(rows, SECONDS)), rows_of(last.last(rows)))
    first, second, repeated = steps
    return Course(first, second, repeated, due, before, after)


def written_long_ago(place: Path, gateway: str) -> None:
    """Let the files of a gateway that was away seem a month older than the others."""
    month_s = 30 * 86_400
    (found,) = (path for path in listed(place) if gateway_of(path) == gateway)
    os.utime(found, (found.stat().st_mtime - month_s,) * 2)


def forget_the_last_batch(output: Path) -> None:
    """Leave what a watch has that was killed before it noted its last batch."""
    done = sorted((output / "checkpoint/tables/commits").glob("[0-9]*"))
    for path in [done[-1], done[-1].with_name(f".{done[-1].name}.crc")]:
        path.unlink(missing_ok=True)


def test_files_that_land_in_two_steps_add_up_to_what_a_batch_job_says(course: Course) -> None:
    assert course.second == course.due


def test_what_was_read_is_not_read_again_when_it_is_compacted(course: Course) -> None:
    assert of_files(course.first.rates) == course.before == course.after
    assert of_files(course.second.rates) == of_files(course.due.rates)


def test_rows_are_taken_from_journals_and_not_again_from_the_files_they_become(course: Course) -> None:
    steps = course.first, course.second, course.repeated
    taken = [sum(int(row[3]) for row in step.rates if row[1] == JOURNALED) for step in steps]
    assert taken == [5, 8, 8]


def test_a_batch_that_is_repeated_replaces_itself(course: Course) -> None:
    assert course.repeated == course.second


def test_a_file_that_was_written_long_ago_is_taken_when_it_lands(course: Course) -> None:
    first, second = ({row[1] for row in step.rates} for step in (course.first, course.second))
    assert second - first == {"seg-2", "seg-3"}  # what lies on them only their own gateways hear


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


def divided(rows: "DataFrame", directory: Path, count: int) -> None:
    """Write rows as the rates of so many batches."""
    found = rates.seen(rows, SECONDS, 1).toArrow()
    for number in range(count):
        part = found.take([*range(number, len(found), count)])
        rows.sparkSession.createDataFrame(part).coalesce(1).write.parquet(str(directory / f"batch={number}"))


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
