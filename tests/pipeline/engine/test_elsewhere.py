"""Every job gives the same rows on other engines as here: on Sail, over Connect, on a resident server, on a
cluster of which a worker dies, and under spark-submit."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from tests.helpers import ROOT, alone, s3
from tests.helpers.ports import free_port

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline import jobs
from pipeline.engine import choice, java, serve
from pipeline.engine.jars import spark_home
from pipeline.engine.jvm import options, until
from pipeline.input import read as capture
from tests.pipeline.every_job import TABLES, Answers, answers
from tests.rigs import planted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(900)
SAIL: Final = ("pysail==0.7.2", "pyspark-client==4.2.0", "pandas<3", "pyarrow", "numpy", "PyYAML", "pynng")
ON_SAIL: Final = [name for name in TABLES if "sail" in jobs.find(name).engines]
ALWAYS: Final = ("audit", "rates", "last", "tokens")
ON_CLUSTER: Final = ("audit", "rates")
FEW: Final = ("--conf", "spark.sql.shuffle.partitions=4")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture")
    planted.generate(path, planted.Plan(rows=18_000, lost=0.01, doubled=0.006, echoed=0.004))
    return path


@pytest.fixture(scope="module")
def here(spark: "SparkSession", directory: Path) -> Answers:
    found = answers(spark, capture.root(str(directory)), str(directory))
    assert set(found) == set(TABLES)
    empty = {f"{job} {table}" for job, tables in found.items() for table, rows in tables.items() if not rows}
    assert empty <= {"logs logs", "quality flaws"}  # nobody published any; the recorders missed nothing
    return found


def run(*words: str, python: str = sys.executable, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a process of its own says, which knows nothing of the session that runs here; `more`: of its
    environment."""
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, timeout=600, cwd=ROOT, env=alone() | dict(more)
    )
    assert done.stdout, done.stderr
    return done.stdout


def tables(*words: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, object]:
    """Return the tables that a command prints as JSON, without the facts about the run."""
    found: dict[str, object] = json.loads(run(*words, more=more))
    found.pop("run")
    return found


def there(directory: Path, *where: str, python: str = sys.executable) -> Answers:
    words = ["-m", "tests.pipeline.every_job", str(directory), *where]
    found: Answers = json.loads(run(*words, python=python, more={"PYTHONPATH": str(ROOT)}))
    return found


def test_a_connect_session_gives_the_same(spark: "SparkSession", directory: Path, connect_port: int) -> None:
    if not connect_port:
        pytest.skip("Connect's client is not installed: pip install -e '.[connect]'")
    left_out = [word for job in TABLES if job not in ALWAYS for word in ("--without", job)]
    found = there(directory, "--remote", f"sc://127.0.0.1:{connect_port}", *left_out)
    assert found == answers(spark, capture.root(str(directory)), str(directory), ALWAYS)


def test_a_session_that_somebody_has_closed_is_one_clear_line(
    spark: "SparkSession", directory: Path, connect_port: int
) -> None:
    if not connect_port:
        pytest.skip("Connect's client is not installed: pip install -e '.[connect]'")
    url = f"sc://127.0.0.1:{connect_port}/;session_id={uuid4()}"
    one = f"from pyspark.sql import SparkSession as S; s = S.builder.remote({url!r}).getOrCreate(); "
    run("-c", one + "print(s.sql('SELECT 1').collect()); s.stop()")
    words = [sys.executable, "-m", "buscoupler", "last", str(directory), "--remote", url, "-q"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "another client has closed it" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_ended_leaves_no_java(number: signal.Signals) -> None:
    pytest.importorskip("grpc")
    port = free_port()
    words = ["-m", "buscoupler", "pipeline", "serve", "--port", str(port), "--memory", "1g"]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT)
    try:
        assert serve.listening(port, 120.0, process)
        process.send_signal(number)
        assert process.wait(60) == 0
        assert not serve.listening(port, 0.5)
    finally:
        process.kill()


def stranger(url: str, place: Path) -> "subprocess.CompletedProcess[str]":
    """Run a client that knows no token of ours."""
    session = f"SparkSession.builder.remote({url!r}).getOrCreate()"
    code = f"from pyspark.sql import SparkSession; print({session}.range(3).count())"
    environment = alone() | {"XDG_RUNTIME_DIR": str(place)}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=place, env=environment)


@pytest.mark.slow
def test_a_resident_connect_server_gives_the_same(directory: Path, here: Answers, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    port = free_port()
    with serve.running(port, "2g", tmp_path / "log"):
        assert there(directory, "--remote", f"sc://127.0.0.1:{port}") == here
        for url in (f"sc://localhost:{port}", f"sc://localhost:{port}/;token=guessed"):
            done = stranger(url, tmp_path)
            assert done.returncode == 1, done.stdout
            assert "UNAUTHENTICATED" in done.stderr


@pytest.mark.slow
def test_spark_submit_runs_our_command_and_gives_the_same(directory: Path) -> None:
    words = ["audit", str(directory), "--json", "--quiet", "--limit", "100000"]
    programs = Path(sys.executable).parent
    environment = alone() | {"JAVA_HOME": str(java.find().home), "PATH": f"{programs}:{os.environ['PATH']}"}
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", *FEW]
    done = subprocess.run(
        [*submit, str(ROOT / "examples" / "submit.py"), *words],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("run")["engine"] == "spark"
    assert found == tables("-m", "buscoupler", *words)


@contextmanager
def daemon(tmp_path: Path, name: str, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    found = java.find()
    scala = next((spark_home() / "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
    environment = dict(
        os.environ, SPARK_HOME=str(spark_home()), JAVA_HOME=str(found.home), SPARK_LOCAL_IP="127.0.0.1"
    )
    environment["SPARK_SCALA_VERSION"] = scala  # spark-class says so else, and workers ask for it
    with (tmp_path / name).open("wb") as log:
        process = subprocess.Popen(
            [found.program, *options("512m"), *words], stdout=log, stderr=log, env=environment, cwd=tmp_path
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
def test_a_cluster_of_four_workers_one_of_which_is_killed_gives_the_same(
    directory: Path, here: Answers, tmp_path: Path
) -> None:
    port, place = free_port(), "org.apache.spark.deploy"
    url = f"spark://127.0.0.1:{port}"
    worker = ["-c", "1", "-m", "1g", "--host", "127.0.0.1", "-d", str(tmp_path), url]
    master = ["--host", "127.0.0.1", "-p", str(port), "--webui-port", str(free_port())]
    with ExitStack() as stack:
        stack.enter_context(daemon(tmp_path, "master", f"{place}.master.Master", *master))
        for name in ("worker1", "worker2", "worker3", "worker4"):
            words = [f"{place}.worker.Worker", "--webui-port", str(free_port()), *worker]
            last = stack.enter_context(daemon(tmp_path, name, *words))
        assert serve.listening(port, 60.0)
        settings = [*FEW, "--conf", "spark.driver.host=127.0.0.1"]
        with ThreadPoolExecutor(1) as beside:
            left_out = [word for job in TABLES if job not in ON_CLUSTER for word in ("--without", job)]
            found = beside.submit(there, directory, "--master", url, "--memory", "1g", *settings, *left_out)
            assert until(lambda: len(list(tmp_path.glob("app-*/[0-9]*/stderr"))) == 4, 60.0)
            last.kill()
            assert found.result() == {job: here[job] for job in ON_CLUSTER}


def client_alone() -> str:
    """The Python of an environment with Spark's client, but not Spark, which is made once."""
    home = Path(sys.prefix) / "sail"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            venv.create(home, with_pip=True, clear=True)
            words = [str(home / "bin" / "pip"), "install", "-q", *SAIL]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"it cannot be installed here: {done.stderr[-300:]}")
            (home / "complete").touch()
    return str(home / "bin" / "python")


def on_sail(directory: Path, python: str = sys.executable) -> Answers:
    return there(directory, "--engine", choice.SAIL, python=python)


def test_sail_gives_the_same(spark: "SparkSession", directory: Path) -> None:
    pytest.importorskip("pysail")
    assert on_sail(directory) == answers(spark, capture.root(str(directory)), str(directory), ON_SAIL)


@pytest.mark.slow
def test_sail_gives_the_same_beside_a_client_alone(directory: Path, here: Answers) -> None:
    assert on_sail(directory, client_alone()) == {job: here[job] for job in ON_SAIL}


@pytest.fixture(scope="module")
def store(directory: Path) -> Iterator[dict[str, str]]:
    """Settings of clients of a server of S3's protocol, with the capture in bucket `plant`."""
    pytest.importorskip("moto")
    with s3.served() as port:
        s3.client(port).create_bucket(Bucket="plant")
        s3.put(port, directory / "capture", "capture")
        yield s3.environment(port)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["audit", "rates", "last", "failovers"])
def test_sail_gives_the_same_from_an_object_store(directory: Path, job: str, store: dict[str, str]) -> None:
    pytest.importorskip("pysail")
    words = ["-m", "buscoupler", job, "--json", "--quiet", "--engine", choice.SAIL]
    assert tables(*words, "s3a://plant/capture", more=store) == tables(*words, str(directory))
