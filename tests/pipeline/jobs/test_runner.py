"""The tables of a job as the runner shows them: as text, as JSON, with names for tokens."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import Row

from appliance.commandline.cli import main
from bus.names import Names
from bus.wire.pattern import hexadecimal, token
from capture.names import add
from capture.names import read as names_in_file
from capture.schema import Kind
from pipeline import jobs
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.input.names import known
from pipeline.input.read import read, root
from pipeline.jobs.record import OpenCapture
from pipeline.jobs.runner import of_wires_alone, show
from pipeline.output.tables import Progress
from tests.pipeline.every_job import options
from tests.rigs.planted import KINDS, Plan, generate
from tests.rigs.planted.names import FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SAIL)
WITH_NAMES = [job.name for job in jobs.every() if job.has_names]
NAMING = ["rates", "last", "failovers"]


@pytest.fixture(scope="module")
def capture(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> OpenCapture:
    directory = tmp_path_factory.mktemp("named")
    generate(directory, Plan(rows=12_000))
    names = Names(names_in_file(directory / FILE))
    return OpenCapture(spark, root(str(directory)), Progress(quiet=True), names)


def shown(name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    directory = str(Path(capture.directory).parent)
    status = show(jobs.find(name), options(name, directory, *words), capture)
    assert status == 0
    return capsys.readouterr().out


def names_file(capture: OpenCapture) -> str:
    return str(Path(capture.directory).parent / FILE)


def test_jobs_with_tokens_take_names() -> None:
    assert WITH_NAMES == ["audit", "rates", "last", "failovers", "signals", "report", "sql", "tokens"]


@pytest.mark.parametrize("name", NAMING)
def test_json_has_names_beside_tokens(
    name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, list[dict[str, Any]]] = json.loads(shown(name, capture, capsys, "--json"))
    rows = [row for rows in found.values() for row in rows if {"name", "name1", "names"} & set(row)]
    assert rows
    for row in rows:
        first = row["tokens"][0] if "tokens" in row else row.get("token", row.get("token1"))
        label = row["names"][0] if "names" in row else row.get("name", row.get("name1"))
        assert label in KINDS
        assert token(label) == first


@pytest.mark.parametrize("name", NAMING)
def test_tokens_are_names_in_text_and_else_hex(
    name: str, capture: OpenCapture, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = shown(name, replace(capture, names=Names()), capsys)
    named = shown(name, capture, capsys)
    kinds = [kind for kind in KINDS if hexadecimal(token(kind)) in bare]
    assert kinds
    for kind in kinds:
        assert kind not in bare
        assert kind in named
        assert hexadecimal(token(kind)) not in named
        assert str(token(kind)) not in bare + named


def test_the_job_of_tokens_shows_hex(capture: OpenCapture, capsys: pytest.CaptureFixture[str]) -> None:
    found = show(jobs.find("tokens"), options("tokens", str(Path(capture.directory).parent)), capture)
    assert found == 1
    shared = capture.names.collisions()
    text = capsys.readouterr().out
    assert shared
    for number, names in shared.items():
        assert f"{hexadecimal(number)}  {names}" in text


@pytest.mark.engines(SPARK, SAIL)
def test_names_beside_the_capture_and_names_given_are_known(
    spark: "SparkSession", capture: OpenCapture, tmp_path: Path
) -> None:
    days = tmp_path / "capture"
    shutil.copytree(capture.directory, days)
    add(days, "gw-a", ["fridge"])
    add(days, "gw-b", ["oven"])
    remote = f"file://{days}"
    for where in (str(days), remote):
        names = known(spark, where, [["door"], f"file://{names_file(capture)}"])
        assert [names.get(token(name)) for name in ("fridge", "oven", "door")] == ["fridge", "oven", "door"]
        assert names.get(token(KINDS[0])) == KINDS[0]
        rows = read(spark, where)  # the directory of names is no data
        assert rows.count() == read(spark, capture.directory).count()
    assert known(spark, f"file://{capture.directory}", ()).get(token("fridge")) is None
    with pytest.raises(PipelineError, match="no such file of names"):
        known(spark, str(days), ["file:///nowhere.txt"])


def test_a_file_of_names_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["last", "/tmp", "--names", "/nowhere"])
    assert stop.value.code == 2
    assert "/nowhere: there is no such file" in capsys.readouterr().err


def test_a_log_of_the_field_without_a_message_of_a_bus_is_told() -> None:
    """`rates` and `last` only said `none` of it."""
    wires, frames = Row(kind=Kind.WIRE, rows=3), Row(kind=Kind.FRAME, rows=1)
    (text, _) = of_wires_alone([wires, Row(kind=Kind.GAP, rows=1), wires])
    assert text.startswith("No message of a bus is in it, only 6 frames of wires: ")
    assert not list(of_wires_alone([wires, frames]))
    assert list(of_wires_alone([wires, Row(kind=99, rows=1)]))  # of a newer recorder
    assert not list(of_wires_alone([]))
