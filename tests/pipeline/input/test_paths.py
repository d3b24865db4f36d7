"""A path is a path: no engine and no job takes it for a pattern or a URL, whatever is in it."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from capture.files import CaptureError
from capture.plainly import plainly
from capture.stores import store_of
from pipeline import jobs
from pipeline.engine.choice import SAIL, SPARK
from pipeline.input import read, sample
from pipeline.input.source import Reader
from pipeline.input.span import WHOLE
from pipeline.jobs.opening import ask
from pipeline.output import place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = (
    "cap[1]", "[hall]3", "{a,b}", "st*r", "q?", "b\\s", "h#sh", "100%", "pc%20", "co:lon", "com,ma", "semi;",
    "ap'os", 'qu"ote', " bl ank ", "Üml äut", "new\nline", "a=b", "$HOME", "~", "-q",
)  # fmt: skip
"""Of directories; beside them lie those that a pattern would find."""
NO_DELTA = ("b\\s", "pc%20", "new\nline")
"""Where deltalake itself would look somewhere else."""
GLOBS = NAMES[:6]
MEANT = ("cap1", "h3", "a", "b", "star", "qx")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("captures")
    for number, name in enumerate((*NAMES, *MEANT), 3):
        sample.write(root / name, number)
    return root


def on_sail(spark: "SparkSession") -> bool:
    return "connect" in type(spark).__module__


@pytest.mark.engines(SPARK, SAIL)
def test_an_engine_reads_the_directory_that_is_named(spark: "SparkSession", captures: Path) -> None:
    for number, name in enumerate(NAMES, 3):
        where = ask(jobs.find("audit"), jobs.find("audit").parsed(str(captures / name))).where
        assert where == str(captures / name / "capture")
        if on_sail(spark):
            with plainly(where) as plain:
                assert read.read(spark, plain).where("kind = 0 and dir = 0").count() == number, name
        elif name in GLOBS:
            (found,) = read.read(spark, where).inputFiles()
            assert f"{captures / name}/" in unquote(found) + found, name


@pytest.mark.engines(SPARK, SAIL)
def test_an_engine_writes_to_the_directory_that_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    for name in NAMES if on_sail(spark) else ["[a]{b,c}*?\\\n"]:
        place.write(spark.range(1), str(tmp_path / name / "audit"), "totals")
        made = tmp_path / name / "audit" / "totals"
        assert any(made.glob("*.parquet")), name
    assert {path.name for path in tmp_path.iterdir()} <= {*NAMES, name}
    if not on_sail(spark):  # as a watch reads again what it has written
        assert spark.read.options(**read.PATHS).parquet(str(made)).count() == 1


@pytest.mark.parametrize("name", NAMES)
def test_pcapng_is_found_in_the_directory_that_is_named(tmp_path: Path, name: str) -> None:
    for one in (name, *MEANT):
        (tmp_path / one / "in").mkdir(parents=True)
        (tmp_path / one / "in" / f"{one}.pcapng").touch()
    wanted = str(tmp_path / name / "in" / f"{name}.pcapng")
    for path in (str(tmp_path / name), wanted):
        assert [one.value for one in Reader(path, WHOLE).partitions()] == [wanted]


@pytest.mark.parametrize("name", NAMES)
def test_a_delta_table_is_where_it_was_asked_for(captures: Path, tmp_path: Path, name: str) -> None:
    delta = pytest.importorskip("capture.delta", reason="deltalake")
    from capture.tables import load

    to = str(tmp_path / name)
    if name in NO_DELTA:
        with pytest.raises(CaptureError, match="no Delta table can be there"):
            delta.DeltaTable(store_of(to), to)
        return
    table = delta.DeltaTable(store_of(to), to)
    assert sum(one.added for one in load(captures / "cap1" / "capture", table)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "_delta_log").is_dir()
