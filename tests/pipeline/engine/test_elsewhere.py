"""Every job gives the same rows in another session as here: on Sail, and over Connect."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from tests.helpers import ROOT
from tests.rigs.planted import generate

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from capture import parquet
from capture.files import boot_of, finished, gateway_of, opened
from capture.schema import Kind
from pipeline import jobs
from pipeline.engine.choice import SAIL
from pipeline.engine.session import SMALL
from pipeline.input import read as capture
from tests.pipeline.engines import compiled
from tests.pipeline.every_job import TABLES, Answers, answers, without_all_but
from tests.pipeline.processes import PLAN, on_sail, run, there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(900)
ITEMS: Final = 300
OVER_CONNECT: Final = (
    tuple(TABLES) if "BUSCOUPLER_EVERY_JOB" in os.environ else ("logs", "signals", "quality")
)
"""The jobs over Connect, besides a report, which is of the others; `tokens` are asked for at a resident
server (tests/pipeline/engine/test_servers.py)."""
ON_SAIL: Final = [name for name in TABLES if "sail" in jobs.find(name).engines]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture")
    generate(path, PLAN)
    return path


@pytest.fixture(scope="module")
def here(spark: "SparkSession", directory: Path) -> Answers:
    with compiled(spark):
        found = answers(spark, capture.root(str(directory)), str(directory))
    assert set(found) == set(TABLES)
    empty = {f"{job} {table}" for job, tables in found.items() for table, rows in tables.items() if not rows}
    # nobody published any; the recorders missed nothing; all was looked at
    assert empty <= {"logs logs", "quality flaws", "audit coverage", "audit translated"}
    return found


def test_a_connect_session_gives_the_same(
    here: Answers, directory: Path, connect_port: int, tmp_path: Path
) -> None:
    if not connect_port:
        pytest.skip("Connect's client is not installed: pip install -e '.[connect]'")
    words = [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")]
    words += ["--remote", f"sc://127.0.0.1:{connect_port}"]
    found = there(directory, *words, *without_all_but(*OVER_CONNECT))
    assert found == {job: here[job] for job in OVER_CONNECT}
    pages = []
    for name, where in (("connect", words), ("sail", ["--engine", SAIL])):
        run("-m", "buscoupler", "report", str(directory), "-o", str(tmp_path / name), "-q", *where)
        pages.append((tmp_path / name).read_text())
    assert pages[0] == pages[1]


def test_a_session_that_somebody_has_closed_is_one_clear_line(
    spark: "SparkSession", directory: Path, connect_port: int
) -> None:
    if not connect_port:
        pytest.skip("Connect's client is not installed: pip install -e '.[connect]'")
    url = f"sc://127.0.0.1:{connect_port}/;session_id={uuid4()}"
    one = f"from pyspark.sql import SparkSession as S; s = S.builder.remote({url!r}).getOrCreate(); "
    run("-c", one + "print(s.sql('SELECT 1').collect()); s.stop()")
    words = [sys.executable, "-m", "buscoupler", "last", str(directory), "--remote", url, "-q"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "another client has closed it" in done.stderr


def test_a_session_with_a_name_goes_on_after_a_job_that_fails(
    spark: "SparkSession", directory: Path, connect_port: int
) -> None:
    """After one wrong query it was closed for good, and so was what `pipeline serve` tells to use."""
    if not connect_port:
        pytest.skip("Connect's client is not installed: pip install -e '.[connect]'")
    url = f"sc://127.0.0.1:{connect_port}/;session_id={uuid4()}"
    words = [sys.executable, "-m", "buscoupler", "pipeline", "sql", str(directory), "--remote", url, "-q"]
    for query, status in (("CREATE/**/TABLE t (a int)", 1), ("SELECT nothing", 1), ("SELECT 1 AS a", 0)):
        done = subprocess.run([*words, "-e", query], capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, "another client" in done.stderr) == (status, False), done.stderr


def test_sail_gives_the_same(here: Answers, directory: Path) -> None:
    pytest.importorskip("pysail")
    assert ON_SAIL == TABLES  # so its answers stand for Spark's in tests/pipeline/engine/test_servers.py
    assert on_sail(directory) == here


def test_items_of_wires_change_no_answer(here: Answers, directory: Path, tmp_path: Path) -> None:
    pytest.importorskip("pysail")
    more = shutil.copytree(directory, tmp_path / "more")
    last = {(gateway_of(path), boot_of(path)): path for path in finished(more)}
    for path in last.values():
        put_items(path, ITEMS)
    found = on_sail(more)
    for job, name in (("audit", "capture"), ("quality", "recorders"), ("quality", "completeness")):
        found[job][name] = [_without(ITEMS, row) for row in found[job][name]]
    assert found == here


def _without(items: int, row: str) -> str:
    """Return the row of a recorder with so many rows fewer, for it counts all that it has written."""
    return re.sub(r"(?<='rows': )\d+", lambda found: str(int(found[0]) - items), row)


def put_items(path: Path, count: int) -> None:
    """Put items of wires behind the first row of a file that is the last one of its run."""
    written = path.stat()
    with opened(path) as file:
        schema, table = parquet.rows_schema(file), parquet.recorded(file.read())
    first, *rows = table.drop_columns(["contents"]).to_pylist()
    nothing = dict.fromkeys(("origin", "seq", "hops", "type", "tokens"))
    item = first | nothing | {"kind": int(Kind.WIRE), "reason": "frames", "payload": bytes(16)}
    items = [item | {"dir": number % 2, "count": 1, "message_bytes": 16} for number in range(count)]
    for number, row in enumerate(items, first["cap_seq"] + 1):
        row["cap_seq"] = number
    for row in rows:
        row["cap_seq"] += count
    parquet.write(path, schema, [pa.RecordBatch.from_pylist([first, *items, *rows], schema=schema)])
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
