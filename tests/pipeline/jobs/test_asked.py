"""What the command `signals` names, and the capture does not have, is named with what may be meant."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("cantools")

from bus.names import Names
from capture.names import beside
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.input import read
from pipeline.jobs import find
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.pipeline.signals.signals_support import Seen, capture_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = find("signals")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("asked")
    gears = [Seen(10 * n, "car/0x200", bytes((n, 10 * n + 10))) for n in range(4)]
    levels = [Seen(10 * n + 1, "tank/level", b"%d" % n, "bus hall", "bus hall") for n in range(4)]
    capture_of(made, {"gw-a": sorted([*gears, *levels])}, files_each=1)
    written(made, CAR)
    return made


def rows(spark: "SparkSession", root: Path, *words: str) -> list[dict[str, Any]]:
    """Return the last table of the command, with the database of a car."""
    return answer(spark, root, "--dbc", str(root / "car.dbc"), *words)


def answer(spark: "SparkSession", root: Path, *words: str) -> list[dict[str, Any]]:
    options, days = JOB.parsed(str(root), *words), read.root(str(root))
    assert JOB.prepare is not None
    assert JOB.tables is not None
    JOB.prepare(options)
    capture = OpenCapture(spark, days, Progress(quiet=True), Names(beside(Path(days))))
    return [[row.asDict() for row in one.frame.collect()] for one in JOB.tables(options, capture)][-1]


UNKNOWN = {
    "--signal oyl": '--signal: oyl is no signal of the capture; did you mean "Oil"?',
    "--signal Gearbox/Oil --signal tank/levels": (
        '--signal: tank/levels is no signal of the capture; did you mean "tank/level"?'
    ),
    "--signal zzz --episodes": "--signal: zzz is no signal of the capture; known here: Gear, Oil, level",
    "--signal levl --resample-ms 1000": '--signal: levl is no signal of the capture; did you mean "level"?',
    "--where ruby>3": "--where: ruby is no signal of the capture; known here: Gear, Oil, level",
    "--where Gearbox/oyl>3": '--where: Gearbox/oyl is no signal of the capture; did you mean "Gearbox/Oil"?',
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("words", UNKNOWN)
def test_a_signal_that_is_not_there_is_named_with_what_may_be_meant(
    spark: "SparkSession", root: Path, words: str
) -> None:
    with pytest.raises(PipelineError) as told:
        rows(spark, root, *words.split())
    assert str(told.value) == UNKNOWN[words]


@pytest.mark.engines(SAIL)
def test_a_signal_that_is_not_there_leaves_the_table_before(spark: "SparkSession", root: Path) -> None:
    out = root.parent / "kept"
    rows(spark, root, "--signal", "level", "--output", str(out))
    before = sorted(out.rglob("*.parquet"))
    with pytest.raises(PipelineError, match="levle is no signal"):
        rows(spark, root, "--signal", "levle", "--output", str(out))
    assert sorted(out.rglob("*.parquet")) == before != []


@pytest.mark.engines(SAIL)
def test_a_signal_of_a_database_may_have_no_value(spark: "SparkSession", root: Path) -> None:
    """Nor one of the capture while a condition holds."""
    assert rows(spark, root, "--signal", "car/EngineData/rpm", "--signal", "level")[0]["signal"] == "level"
    assert rows(spark, root, "--signal", "rpm") == []
    assert rows(spark, root, "--signal", "level", "--where", "oil > 99") == []


@pytest.mark.engines(SAIL)
def test_places_and_patterns_that_a_capture_does_not_have_are_told(
    spark: "SparkSession", root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    car = root / "car.dbc"
    places = [f"can0={car}", f"can1={car}", f"plant={car}", f"car={car}"]
    forms = ["tank/levle=number", "tank=text", "0x123/0x00000005=text"]
    words = [*(f"--dbc={one}" for one in places), *(f"--form={one}" for one in forms)]
    answer(spark, root, *words)
    assert [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()] == [
        '--dbc can1=: the capture has no such segment or pattern; did you mean "can0"?',
        "--dbc plant=: the capture has no such segment or pattern; known here: bus hall, can can0",
        '--form tank/levle=number: the capture has no name levle; did you mean "level"?',
    ]


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize(
    "condition", ["state > 5", "5 < state", "abs(state) > 2", "state + 1 > level", "state", "state = true"]
)
def test_a_signal_with_texts_where_a_number_has_to_be_is_named(
    spark: "SparkSession", tmp_path: Path, condition: str
) -> None:
    seen = [Seen(n, "plant/state", text) for n, text in enumerate((b"on", b"off", b"on"))]
    capture_of(tmp_path, {"gw-a": [*seen, Seen(9, "tank/level", b"7")]})
    with pytest.raises(PipelineError) as told:
        answer(spark, tmp_path, "--where", condition)
    hint = "it has texts, no numbers: compare it with one, such as state = 'off'"
    assert str(told.value) == f"--where: state: {hint}"
