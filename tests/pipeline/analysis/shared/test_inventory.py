"""The summaries in capture files, compared with a pass over all their rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from capture import schema
from capture.files import listed
from capture.schema import Kind
from pipeline.analysis.shared import inventory
from pipeline.input import read as capture
from pipeline.input import sound
from pipeline.jobs.record import Facts, OpenCapture
from pipeline.output.tables import Progress
from tests.pipeline.engines import plan
from tests.rigs.planted import Plan, generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def planted(tmp_path: Path) -> str:
    generate(tmp_path, Plan(rows=20_000))
    return capture.root(str(tmp_path))


def same(found: list[Row]) -> set[tuple[Any, ...]]:
    rows = (row.asDict() for row in found if row.kind != Kind.TOPOLOGY)
    less = ("summaries", "topologies", "began_ns")
    return {tuple(value for name, value in row.items() if name not in less) for row in rows}


def is_summarised(found: list[Row]) -> bool:
    return any(row.summaries for row in found if row.kind != Kind.TOPOLOGY)


def test_it_is_what_a_pass_over_all_rows_finds(spark: "SparkSession", planted: str) -> None:
    rows = capture.read(spark, planted)
    found = inventory.take(rows)
    assert is_summarised(found)
    assert same(found) == same(inventory.counted(rows).collect())


def test_summaries_that_python_reads_add_up_to_what_an_engine_finds(
    spark: "SparkSession", planted: str
) -> None:
    looked = sound.look(Path(planted), thorough=False)
    found = inventory.summarised(capture.read(spark, planted)).collect()
    assert whole(inventory.take(spark.range(0), looked.rows, looked.summaries)) == whole(found)
    assert any(row.topologies and row.began_ns for row in found)


def whole(found: list[Row]) -> set[tuple[Any, ...]]:
    lists = "topologies", "began_ns"
    plain = [{name: tuple(map(_plain, sorted(row[name]))) for name in lists} for row in found]
    return {tuple(sorted((row.asDict() | its).items())) for row, its in zip(found, plain, strict=True)}


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_summaries_of_some_of_the_files_alone_are_not_taken(spark: "SparkSession", planted: str) -> None:
    without_contents(listed(Path(planted))[0])
    looked = sound.look(Path(planted), thorough=False)
    rows = capture.read(spark, planted)
    assert looked.summaries
    found = inventory.take(rows, looked.rows, looked.summaries)
    assert same(found) == same(inventory.counted(rows).collect())


def test_a_file_that_came_since_the_look_is_in_the_inventory(spark: "SparkSession", planted: str) -> None:
    later, *_ = listed(Path(planted))
    rows = pq.read_metadata(later).num_rows
    later.rename(aside := Path(planted).parent / later.name)
    looked = sound.look(Path(planted), thorough=False)
    aside.rename(later)
    opened = OpenCapture(
        spark, planted, Progress(quiet=True), facts=Facts(rows=looked.rows), newest_ns=looked.newest,
        summaries=looked.summaries,
    )  # fmt: skip
    assert looked.summaries
    assert looked.rows is not None
    assert sum(row.rows for row in opened.inventory()) > looked.rows + rows // 2


def without_contents(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    kept = table.filter(pa.compute.not_equal(table["kind"], Kind.CONTENTS.value))
    pq.write_table(kept.drop_columns([schema.CONTENTS]), path)


def test_one_file_of_an_earlier_version_makes_it_a_pass(spark: "SparkSession", planted: str) -> None:
    before = same(inventory.take(capture.read(spark, planted)))
    without_contents(listed(Path(planted))[0])
    found = inventory.take(capture.read(spark, planted))
    assert not is_summarised(found)
    assert same(found) == before


def test_it_is_read_without_the_rows(spark: "SparkSession", planted: str) -> None:
    """The group of rows says that it has no contents."""
    for path in listed(Path(planted)):
        kinds = [pq.read_metadata(path).row_group(n).column(3).statistics for n in range(2)]
        assert [(one.min, one.max) for one in kinds[1:]] == [(Kind.CONTENTS, Kind.CONTENTS)]
        assert kinds[0].max < Kind.CONTENTS
    assert "EqualTo(kind,3)" in plan(inventory.summarised(capture.read(spark, planted)))


def row_of(kind: Kind) -> Row:
    return Row(gateway="g", boot=1, kind=int(kind), first=0, last=9, first_ns=0, last_ns=int(1e9))


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.TOPOLOGY, Kind.GAP, Kind.WIRE)])
def test_a_log_that_was_imported_is_no_run_of_a_recorder(kind: Kind) -> None:
    """So it is not said to go on, or to lack its end."""
    assert inventory.runs([row_of(Kind.WIRE)]) == []
    (run,) = inventory.runs([row_of(Kind.WIRE), row_of(kind)])
    assert not run.is_ended
