"""The answers of a cluster and of this machine are compared row by row."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet

from benchmarks.pipeline.cluster import JOBS, answer, differing, plant_lines
from pipeline import jobs
from pipeline.input import sound


def planted(place: Path, **tables: list[int]) -> Path:
    for name, numbers in tables.items():
        (place / "job" / name).mkdir(parents=True)
        for number, row in enumerate(numbers):
            parquet.write_table(pa.table({"n": [row]}), place / "job" / name / f"{number}.parquet")
    return place


def test_rows_in_another_order_are_the_same(tmp_path: Path) -> None:
    one = answer(planted(tmp_path / "one", rows=[1, 2, 2], none=[]))
    other = answer(planted(tmp_path / "other", rows=[2, 1, 2], none=[]))
    assert one["job/rows"].total() == 3
    assert list(differing(one, other)) == []


def test_a_row_that_is_missing_or_there_twice_and_a_table_that_is_missing_are_named(tmp_path: Path) -> None:
    one = answer(planted(tmp_path / "one", lost=[1, 2], twice=[3], gone=[4], same=[5]))
    other = answer(planted(tmp_path / "other", lost=[1], twice=[3, 3], same=[5]))
    assert list(differing(one, other)) == [
        "job/gone: 1 rows missing, 0 more, such as {'n': 4}",
        "job/lost: 1 rows missing, 0 more, such as {'n': 2}",
        "job/twice: 0 rows missing, 1 more, such as {'n': 3}",
    ]


def test_the_lines_of_a_page_are_compared(tmp_path: Path) -> None:
    for name, text in (("one", "<p>1</p>\n<p>2</p>\n"), ("other", "<p>1</p>\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.html").write_text(text)
    assert list(differing(answer(tmp_path / "one"), answer(tmp_path / "other"))) == [
        "page.html: 1 rows missing, 0 more, such as <p>2</p>"
    ]


def test_every_job_that_runs_on_spark_is_compared() -> None:
    assert {job.name for job in jobs.every() if job.process is None} == JOBS.keys() - {"values"}


def test_the_planted_lines_of_a_log_are_rows_of_a_capture(tmp_path: Path) -> None:
    plant_lines(tmp_path, 10)
    found = sound.look(tmp_path / "capture", thorough=True)
    assert (found.bad, found.rows) == ([], 20)
