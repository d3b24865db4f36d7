"""Compaction: the same rows in fewer files, at every moment, however it ends."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

import pyarrow.parquet as pq

from capture import compact, files, locks
from capture.reader import read
from capture.schema import META_TOPOLOGY, Kind
from devices.tap.retention import remove
from tests.capture.divided import planted
from tests.capture.killed import LATER, compacting
from tests.helpers import ROOT
from tests.helpers.steps import KILLED, Stepping


@pytest.fixture
def days(tmp_path: Path) -> Path:
    return files.days_directory(planted(tmp_path))


def rows_of(days: Path) -> list[Any]:
    return sorted(read(days))


def run(days: Path, before: str = LATER, **options: Any) -> list[compact.Day]:
    return list(compact.compact(days, before, **options))


def test_all_rows_are_in_one_file_of_each_gateway(days: Path) -> None:
    before, sizes = rows_of(days), sum(path.stat().st_size for path in files.listed(days))
    found = run(days)
    assert [(day.files, day.made) for day in found] == [(6, 1)] * 4
    assert sum(day.size_bytes for day in found) == sizes
    assert len(files.listed(days)) == 4
    assert rows_of(days) == before
    assert not list(days.rglob(".*"))
    assert run(days) == []


def test_the_summary_and_the_topology_stay(days: Path) -> None:
    path = files.listed(days)[0]
    topology = pq.read_schema(path).metadata[META_TOPOLOGY.encode()]
    rows = sum(pq.read_metadata(other).num_rows for other in files.listed(path.parent))
    run(days)
    (made,) = files.listed(path.parent)
    assert made.name == path.name
    assert pq.read_schema(made).metadata[META_TOPOLOGY.encode()] == topology
    last = pq.ParquetFile(made).read_row_group(pq.read_metadata(made).num_row_groups - 1).to_pylist()
    assert {row["kind"] for row in last} == {Kind.CONTENTS}
    assert sum(row["contents"]["rows"] for row in last) < rows


def test_files_of_other_runs_and_topologies_and_large_ones_stay_apart(days: Path) -> None:
    directory = files.listed(days)[0].parent
    *_, third, fourth, fifth, sixth = files.listed(directory)
    other = name = sixth.name.replace("0178", "0179", 1)
    sixth.rename(directory / name)
    table = pq.read_table(fourth, partitioning=None)
    changed = {**table.schema.metadata, META_TOPOLOGY.encode(): b"{}"}
    pq.write_table(table.replace_schema_metadata(changed), fourth)
    before = rows_of(days)
    (day,) = [day for day in run(days) if day.directory == directory]
    assert (day.files, day.made) == (3, 1)
    assert [path.name for path in files.listed(directory)][1:] == [fourth.name, fifth.name, other]
    assert rows_of(days) == before
    assert third.name not in {path.name for path in files.listed(directory)}


def test_a_file_has_at_most_the_bytes_that_are_asked_for(days: Path) -> None:
    before = rows_of(days)
    size = files.listed(days)[0].stat().st_size
    assert {(day.files, day.made) for day in run(days, file_bytes=3 * size + 10_000)} == {(6, 2)}
    assert rows_of(days) == before
    assert run(days, file_bytes=1) == []


def test_days_that_are_not_closed_stay_as_they_are(days: Path) -> None:
    day = files.listed(days)[0].parents[1].name.partition("=")[2]
    assert run(days, before=day) == []


def test_what_a_recorder_may_finish_again_stays_as_it_is(days: Path) -> None:
    path = files.listed(days)[2]
    journal = files.journal_directory(days.parent, files.gateway_of(path)) / f"{path.stem}.arrows"
    journal.parent.mkdir(parents=True)
    journal.touch()
    before = rows_of(days)
    (day,) = [day for day in run(days) if day.directory == path.parent]
    assert (day.files, day.made) == (5, 2)
    assert path.exists()
    assert rows_of(days) == before


def test_what_comes_meanwhile_is_kept(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.listed(days)[0]
    late = path.with_name(f"{files.name_of(1, 0)}.parquet")
    content = path.read_bytes()
    exchange = compact.exchange

    def and_then(one: Path, other: Path) -> None:
        if not late.exists():
            late.write_bytes(content)
        exchange(one, other)

    monkeypatch.setattr(compact, "exchange", and_then)
    run(days)
    assert late.read_bytes() == content
    assert not list(days.rglob(".*"))


STEPS = (
    "os.link",
    "os.utime",
    "shutil.rmtree",
    "compact.exchange",
    "compact.finish",
    "parquet.write",
    "Path.unlink",
)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [1, 3, 4])
def test_killed_at_any_moment_no_row_is_lost_or_doubled(days: Path, step: str, number: int) -> None:
    """Before a call, before the next one, or after it."""
    before = rows_of(days)
    child = Stepping(compacting, step, str(days))
    child.reach(number)
    assert child.kill() in (0, KILLED)
    assert rows_of(days) == before
    run(days)
    assert rows_of(days) == before
    assert len(files.listed(days)) == 4
    assert not list(days.rglob(".*"))


@pytest.mark.parametrize("number", [1, 2, 4])
def test_one_of_two_waits_for_the_other(days: Path, number: int) -> None:
    """The second removed what the first was making, and the first put a piece of the second in place."""
    before, said = rows_of(days), list[str]()
    child = Stepping(compacting, "parquet.write", str(days))
    child.reach(number)

    def waited(whom: str) -> None:
        said.append(whom)
        assert child.finish() == 0

    assert len(run(days, on_wait=waited)) < 4
    assert said == ["another compaction"]
    assert rows_of(days) == before
    assert len(files.listed(days)) == 4
    assert not list(days.rglob(".*"))


def test_a_day_that_its_recorder_deletes_meanwhile_is_passed_by(days: Path) -> None:
    (day,) = days.glob("date=*")
    later = day.rename(days / "date=2998-12-31")
    shutil.copytree(later, day)
    steps = compact.compact(days, LATER)
    assert next(steps).directory.parent == day
    for path in files.listed(later):
        remove(path)
    assert [one.directory.parent for one in steps] == [day] * 3
    assert not later.exists()


def test_it_waits_for_who_reads(days: Path) -> None:
    words = [sys.executable, "-m", "buscoupler", "pipeline", "compact", str(days), "--before", LATER]
    with (
        locks.reading(days),
        subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr
        assert "waiting for a job that reads" in process.stderr.readline()
        assert len(files.listed(days)) == 24
        process.terminate()
    assert len(files.listed(days)) == 24
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("6 files (") == 4
    assert len(files.listed(days)) == 4
    again = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert again.stdout == f"nothing to compact before {LATER}\n"


def test_a_file_that_cannot_be_read_is_named_and_nothing_changes(days: Path) -> None:
    path = files.listed(days)[3]
    path.write_bytes(path.read_bytes()[:-50])
    listed = files.listed(days)
    with pytest.raises(files.CaptureError, match=path.name):
        run(days)
    assert files.listed(days) == listed


def test_a_file_system_that_cannot_is_one_clear_line(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(one: Path, other: Path) -> None:
        raise OSError(22, "this file system cannot exchange directories", str(one))

    before = rows_of(days)
    monkeypatch.setattr(compact, "exchange", fail)
    with pytest.raises(files.CaptureError, match="cannot exchange directories"):
        run(days)
    assert rows_of(days) == before
    assert not list(days.rglob(".*"))
