"""Jobs read a Delta table by its log: what compaction and other programs leave beside it is not counted."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyspark")

import deltalake

from capture import compact, delta, files
from capture.stores import store_of
from capture.tables import load
from pipeline.errors import PipelineError
from pipeline.input import read, sound
from tests.capture.divided import divide
from tests.helpers import ROOT, alone
from tests.pipeline.engines import QUICK
from tests.rigs.planted import Plan, generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATER = "2999-01-01"


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("capture")
    generate(directory, Plan(rows=5_000))
    for path in files.listed(directory):
        divide(path, 4)
    return files.days_directory(directory)


@pytest.fixture(params=["compacted", "rewritten"])
def table(request: pytest.FixtureRequest, days: Path, tmp_path: Path) -> Path:
    """A table whose old files are still there, after our compaction or that of another program."""
    where = tmp_path / "table"
    list(load(days, delta.DeltaTable(store_of(str(where)), str(where))))
    before = len(list(where.rglob("*.parquet")))
    if request.param == "compacted":
        assert list(delta.compact(where, LATER, compact.FILE_BYTES))
    else:
        deltalake.DeltaTable(str(where)).optimize.compact()
    assert len(list(where.rglob("*.parquet"))) > before > len(files.listed(where))
    return where


def test_spark_counts_each_row_once(spark: "SparkSession", days: Path, table: Path) -> None:
    every, found = (read.read(spark, read.root(str(path))) for path in (days, table))
    keys = "gateway", "date", "boot", "cap_seq"
    one, two = (frame.where("kind = 0").select(*keys) for frame in (every, found))
    assert one.exceptAll(two).count() == two.exceptAll(one).count() == 0


@cache
def audited(path: Path, *where: str) -> dict[str, Any]:
    """Return the tables of an audit as a command, which is asked once."""
    words = [sys.executable, "-m", "buscoupler", "audit", str(path), "--json", "--quiet", *where]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=alone(), cwd=ROOT)
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return {name: value for name, value in found.items() if name != "run"}


@pytest.mark.timeout(300)  # it starts Spark if there is no Sail
def test_a_command_has_the_same_answer(days: Path, table: Path) -> None:
    assert audited(table, *QUICK) == audited(days, *QUICK)


def test_a_table_cannot_be_followed(table: Path) -> None:
    with pytest.raises(PipelineError, match="cannot be followed"):
        read.followed(str(table))


def test_a_table_that_was_rewritten_without_statistics_is_read(days: Path, tmp_path: Path) -> None:
    """As some programs write, or are told to: what files do not say of themselves is counted."""
    where = str(tmp_path / "table")
    list(load(days, delta.DeltaTable(store_of(where), where)))
    before = sound.look(Path(where), thorough=False)
    silent = deltalake.ColumnProperties(statistics_enabled="NONE")
    properties = deltalake.WriterProperties(default_column_properties=silent)
    deltalake.DeltaTable(where).optimize.compact(writer_properties=properties)
    found = sound.look(Path(where), thorough=False)
    assert (found.bad, found.rows, found.newest_ns) == ([], before.rows, before.newest_ns)
