"""The tables of a job as the runner shows them: as text, as JSON, with names for tokens."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from benchmarks.planted import KINDS, Plan, generate
from benchmarks.planted_names import FILE
from bus.wire.pattern import token
from pipeline import jobs
from pipeline.errors import PipelineError
from pipeline.input.read import root
from pipeline.jobs.record import OpenCapture
from pipeline.jobs.runner import show
from pipeline.output.tables import Progress
from tests.pipeline.every_job import options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH_NAMES = [job.name for job in jobs.every() if job.has_names]


@pytest.fixture(scope="module")
def capture(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> OpenCapture:
    directory = tmp_path_factory.mktemp("named")
    generate(directory, Plan(rows=12_000))
    return OpenCapture(spark, root(str(directory)), Progress(quiet=True))


def shown(name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    directory = str(Path(capture.directory).parent)
    status = show(jobs.find(name), options(name, directory, *words), capture)
    assert status == 0
    return capsys.readouterr().out


def names_file(capture: OpenCapture) -> str:
    return str(Path(capture.directory).parent / FILE)


def test_jobs_with_tokens_take_names() -> None:
    assert WITH_NAMES == ["rates", "last", "failovers"]


@pytest.mark.parametrize("name", WITH_NAMES)
def test_names_are_added_to_json_and_nothing_else_changes(
    name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str]
) -> None:
    bare: dict[str, list[dict[str, Any]]] = json.loads(shown(name, capture, capsys, "--json"))
    named = json.loads(shown(name, capture, capsys, "--json", "--names", names_file(capture)))
    extra = {"name", "name1", "names"}
    assert {table: [{k: v for k, v in row.items() if k not in extra} for row in rows]
            for table, rows in named.items()} == bare  # fmt: skip
    rows = [row for rows in named.values() for row in rows if extra & set(row)]
    assert rows
    for row in rows:
        first = row["tokens"][0] if "tokens" in row else row.get("token", row.get("token1"))
        label = row["names"][0] if "names" in row else row.get("name", row.get("name1"))
        assert label in KINDS
        assert token(label) == first


@pytest.mark.parametrize("name", WITH_NAMES)
def test_names_stand_for_tokens_in_text(
    name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = shown(name, capture, capsys)
    named = shown(name, capture, capsys, "--names", names_file(capture))
    kinds = [kind for kind in KINDS if str(token(kind)) in bare]
    assert kinds
    for kind in kinds:
        assert kind in named
        assert str(token(kind)) not in named


def test_a_file_of_names_that_is_not_there(capture: OpenCapture, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PipelineError, match="no such file of names"):
        shown("last", capture, capsys, "--names", "/nowhere")
