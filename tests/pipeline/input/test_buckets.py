"""Captures in an object store, read by Python on Spark's workers: a server of S3's protocol on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.request import Request, urlopen

import pytest

from tests.helpers import ROOT, alone

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("boto3")
pytest.importorskip("moto")

import pyarrow as pa
from pyspark.sql.types import StructType

from appliance.commandline.cli import main
from capture import files
from capture.files import CaptureError
from capture.schema import DDL_PARTITIONED
from capture.stores import store_of
from pipeline.engine import choice, session
from pipeline.errors import PipelineError, cause_of
from pipeline.input import stored
from pipeline.input.buckets import LEAST_BYTES, MOST_BYTES, PARTS, BucketReader, Piece, pieces
from pipeline.input.read import by_engine, read, root
from pipeline.input.span import LATE_NS, WHOLE, Span, time_ns
from pipeline.input.stored import Listing
from tests.helpers import s3
from tests.pipeline.engines import QUICK, SHORT_LIVED
from tests.rigs.planted import Plan, generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("spark")]  # which parses schemas
DAY: Final = "2026-05-28"
TO: Final = "2026-05-29"
LATER: Final = "2026-05-30"
URL: Final = "s3://plant/capture"
PLAIN: Final = {"Content-Type": "text/plain"}


@dataclass
class Store:
    """A server whose bucket `plant` has a capture of two days, each with the same files."""

    port: int
    log: Path
    directory: Path

    def opened(self) -> set[str]:
        """Return the capture files that clients have read since this was called last."""
        lines = self.log.read_text(errors="replace").splitlines()
        self.log.write_text("")
        words = (line.split() for line in lines if "GET /plant/" in line)
        return {word for line in words for word in line if word.endswith(files.FILE_SUFFIX)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    place = tmp_path_factory.mktemp("store")
    generate(place, Plan(rows=12_000, lost=0.01, doubled=0.006))
    with (place / "log").open("ab") as log, s3.served(log) as port, pytest.MonkeyPatch.context() as patch:
        for name, value in s3.environment(port).items():
            patch.setenv(name, value)
        s3.client(port).create_bucket(Bucket="plant")
        s3.put(port, place / files.CAPTURE, files.CAPTURE)
        s3.put(port, place / files.CAPTURE / f"date={DAY}", f"{files.CAPTURE}/date={LATER}")
        yield Store(port, place / "log", place)


def schema(ddl: str = DDL_PARTITIONED) -> StructType:
    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def batches(reader: BucketReader) -> list[pa.RecordBatch]:
    return [batch for piece in reader.partitions() for batch in reader.read(piece)]


def ran(job: str, where: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a process, whose Java and workers have the store's credentials from it."""
    command = [sys.executable, "-m", "buscoupler", job, where, "--json", "-q", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=alone() | SHORT_LIVED, check=False
    )


class Here(NamedTuple):
    """A way to run commands in this process, on its Spark: `places` are where they would have run."""

    capsys: pytest.CaptureFixture[str]
    places: list[choice.Where]

    def ran(self, *words: str) -> "subprocess.CompletedProcess[str]":
        self.capsys.readouterr()
        status = main([*words, "--json", "-q"])
        return subprocess.CompletedProcess(words, status, *self.capsys.readouterr())


@pytest.fixture
def commands(
    spark: "SparkSession", store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Here]:
    """Commands on the Spark of this process, whose workers get the store's credentials."""
    here = Here(capsys, [])
    monkeypatch.setattr(session, "start", lambda place, *_, **__: here.places.append(place))
    monkeypatch.setattr(session, "session", lambda *_: nullcontext(spark))
    workers = spark.sparkContext.environment
    monkeypatch.setattr(spark.sparkContext, "environment", workers | s3.environment(store.port))
    yield here
    assert here.places
    assert not any(place.resident for place in here.places)  # which has others' credentials


def tables(text: str) -> dict[str, Any]:
    """Return the tables of an answer in JSON, without the facts about the run."""
    found: dict[str, Any] = json.loads(text)
    found.pop("run")
    return found


def check_opened(store: Store) -> None:
    """Check that all files of the first day were opened, and no other."""
    opened = store.opened()
    assert len(opened) == len(files.listed(store.directory))
    assert all(f"/date={DAY}/" in name for name in opened)


def test_an_audit_by_url_is_that_of_the_files_and_opens_no_other_day(store: Store, commands: Here) -> None:
    store.opened()
    found = commands.ran("audit", "s3a://plant/capture", "--to", TO)
    check_opened(store)
    assert found.stderr == ""
    here = ran("audit", str(store.directory), "--to", TO, *QUICK)
    assert (tables(found.stdout), found.returncode) == (tables(here.stdout), here.returncode)
    assert tables(found.stdout)["findings"]


def test_a_process_has_the_credentials_for_its_workers(store: Store) -> None:
    store.opened()
    found = ran("rates", "s3a://plant/capture", "--to", TO)
    check_opened(store)
    here = ran("rates", str(store.directory), "--to", TO, *QUICK)
    assert (tables(found.stdout), found.returncode) == (tables(here.stdout), here.returncode)


@pytest.fixture
def guarded(store: Store) -> Iterator[None]:
    """The server refuses keys that it does not know."""
    for_free = partial(Request, f"http://127.0.0.1:{store.port}/moto-api/reset-auth", headers=PLAIN)
    urlopen(for_free(data=b"0")).close()
    yield
    urlopen(for_free(data=b"inf")).close()


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.usefixtures("guarded")
def test_wrong_credentials_are_one_line(commands: Here) -> None:
    text = one_line(commands.ran("last", URL))
    assert URL in text
    assert "ACCESS_DENIED" in text or "INVALID_ACCESS_KEY_ID" in text or "403" in text


def test_a_missing_bucket_is_one_line(commands: Here) -> None:
    assert "s3://nobody/capture: no such bucket, or no capture in it" in one_line(
        commands.ran("last", "s3://nobody/capture")
    )


def test_a_damaged_page_is_one_line_that_names_the_file(store: Store, commands: Here, tmp_path: Path) -> None:
    path = files.listed(store.directory)[0]
    whole = path.read_bytes()
    middle = len(whole) // 3
    (tmp_path / path.name).write_bytes(whole[:middle] + bytes(2000) + whole[middle + 2000 :])
    place = store_of("s3://plant/damaged")
    name = f"date={DAY}/gateway=gw-0/{path.name}"
    place.put(tmp_path / path.name, name)
    assert f"s3://plant/damaged/{name}: " in one_line(commands.ran("last", "s3://plant/damaged"))


@pytest.mark.usefixtures("store")
def test_spark_has_no_file_system_for_a_store(spark: "SparkSession") -> None:
    if os.environ.get(choice.VARIABLE) == choice.SAIL:
        pytest.skip("Sail reads stores itself")
    assert by_engine(spark, URL) == by_engine(spark, "s3a://plant/capture") == ""
    assert by_engine(spark, "hdfs://head/plant") == "hdfs://head/plant"


def test_rows_are_those_that_spark_reads(spark: "SparkSession", store: Store) -> None:
    reader = BucketReader(URL, Span(to_ns=time_ns(LATER) - LATE_NS), schema())
    found = spark.createDataFrame(pa.Table.from_batches(batches(reader)))
    here = read(spark, root(str(store.directory)))
    assert found.schema.simpleString() == here.schema.simpleString()
    assert found.exceptAll(here).count() == here.exceptAll(found).count() == 0
    assert found.count() == here.count()


def test_only_files_of_the_days_and_gateways_are_opened(store: Store) -> None:
    store.opened()
    batches(BucketReader(URL, Span(from_ns=time_ns(LATER), gateways=("gw-0",)), schema()))
    assert {name.rpartition("/")[0] for name in store.opened()} == {
        f"/plant/capture/date={LATER}/gateway=gw-0"
    }


def test_row_groups_outside_of_the_span_are_not_read(store: Store) -> None:
    """Of the later day's files, whose rows are of the earlier one, that leaves the summaries."""
    span = Span(from_ns=time_ns(LATER))
    found = pa.Table.from_batches(batches(BucketReader(URL, span, schema("kind SMALLINT, gateway STRING"))))
    assert set(found["kind"].to_pylist()) == {3}
    assert found.schema.names == ["kind", "gateway"]


def test_a_recorder_s_directory_may_be_given_and_no_span_is_an_error(store: Store) -> None:
    assert stored.listing("s3://plant").sizes.keys() == {
        f"{files.CAPTURE}/{name}" for name in stored.listing(URL).sizes
    }
    assert batches(BucketReader(URL, Span(from_ns=time_ns("2031-01-01")), schema())) == []
    with pytest.raises(PipelineError, match="no such bucket, or no capture"):
        BucketReader("s3://plant/nothing", WHOLE, schema()).partitions()


def test_a_delta_table_is_read_by_its_log(store: Store) -> None:
    pytest.importorskip("deltalake")
    from capture.delta import DeltaTable
    from capture.tables import load

    url = "s3://plant/table"
    list(load(files.days_directory(store.directory), DeltaTable(store_of(url), url)))
    whole = len(stored.listing(url).sizes)
    path = files.listed(store.directory)[0]
    store_of(url).put(path, f"date={DAY}/gateway=gw-0/{path.name.replace('.', '-not-in-it.')}")
    found = stored.listing(url)
    assert (len(found.sizes), found.is_logged) == (whole, True)
    assert sum(map(len, batches(BucketReader(url, WHOLE, schema())))) == sum(
        map(len, batches(BucketReader(URL, Span(to_ns=time_ns(LATER) - LATE_NS), schema())))
    )


def test_a_file_that_is_none_of_a_capture_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no Parquet")
    store_of("s3://plant/other").put(tmp_path / "x", f"date={DAY}/gateway=gw-0/1-0.parquet")
    with pytest.raises(CaptureError, match=r"s3://plant/other/date=.*/1-0\.parquet: "):
        batches(BucketReader("s3://plant/other", WHOLE, schema()))


def test_names_beside_a_capture_and_by_url(store: Store) -> None:
    s3.client(store.port).put_object(Bucket="plant", Key="capture/_names/gw-0.txt", Body=b"fridge\ndoor\n")
    assert stored.beside(URL) == stored.lines(f"{URL}/_names/gw-0.txt") == ["fridge", "door"]
    assert stored.lines(f"{URL}/_names/nobody.txt") == []


@pytest.mark.parametrize("large", [LEAST_BYTES * 3 // 2, MOST_BYTES * 5])
def test_small_files_go_together_and_large_ones_are_divided(large: int) -> None:
    found = [*pieces(Listing({"a": 10, "b": 10, "c": large, "d": 10}, is_logged=False))]
    ends = [piece.names for piece in found if piece.parts == 1]
    assert ends == [["a", "b"], ["d"]]
    parts = [piece for piece in found if piece.names == ["c"]]
    most = min(max(large // PARTS, LEAST_BYTES), MOST_BYTES)
    assert len(parts) == -(-large // most)
    assert [group for piece in parts for group in piece.groups(7)] == list(range(7))
    assert [*Piece(["a"], is_logged=False).groups(3)] == [0, 1, 2]


def test_an_error_of_ours_is_found_in_the_words_of_an_engine() -> None:
    words = (
        "Job aborted.\n  File x\ncapture.files.CaptureError: s3://b/x.parquet: bad page\n\n\tat org.apache"
    )
    assert cause_of(f"{words}\nCaused by: java.lang.Other: x") == "s3://b/x.parquet: bad page"
    assert cause_of("one\nCaused by: two") == "two"
    stack = (
        "[X] Failed: Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'y'"
    )
    preface = "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    for words in (stack, preface + stack):
        assert cause_of(words) == "ModuleNotFoundError: No module named 'y'"
