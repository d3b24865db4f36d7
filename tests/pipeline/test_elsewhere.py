"""The same job on a Connect server and on a cluster of two workers gives what it gives here. Slow: run by
name

BUSCOUPLER_SLOW=1 pytest tests/pipeline/test_elsewhere.py
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from benchmarks import planted
from pipeline import java, serve
from pipeline.jvm import options, spark_home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif("BUSCOUPLER_SLOW" not in os.environ, reason="takes minutes: set BUSCOUPLER_SLOW=1"),
]
JOBS = ("audit", "rates", "last", "failovers")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture")
    planted.generate(path, planted.Plan(rows=30_000, lost=0.005, doubled=0.003))
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(directory: Path, *where: str) -> dict[str, object]:
    """What each job says, as JSON, from a process of its own."""
    found = {}
    for job in JOBS:
        words = [sys.executable, "-m", "appliance.cli", job, str(directory), "--json", "-q", *where]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert done.stdout, done.stderr
        found[job] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here(directory: Path) -> dict[str, object]:
    return answers(directory)


def test_a_resident_connect_server_gives_the_same(
    directory: Path, here: dict[str, object], tmp_path: Path
) -> None:
    pytest.importorskip("grpc")
    port = free_port()
    server = serve.start(port, "2g", tmp_path / "log")
    try:
        serve.wait(server, port, tmp_path / "log")
        assert answers(directory, "--remote", f"sc://127.0.0.1:{port}") == here
    finally:
        serve.stop(server)


@contextmanager
def daemon(tmp_path: Path, name: str, *words: str) -> Iterator[None]:
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
        yield
    finally:
        process.terminate()
        process.wait(20)


def test_a_cluster_of_two_workers_gives_the_same(
    directory: Path, here: dict[str, object], tmp_path: Path
) -> None:
    master, screen = free_port(), free_port()
    place = "org.apache.spark.deploy"
    worker = [
        "-c",
        "1",
        "-m",
        "1g",
        "--host",
        "127.0.0.1",
        "-d",
        str(tmp_path),
        f"spark://127.0.0.1:{master}",
    ]
    where = ["--host", "127.0.0.1", "-p", str(master), "--webui-port", str(screen)]
    with (
        daemon(tmp_path, "master", f"{place}.master.Master", *where),
        daemon(tmp_path, "worker1", f"{place}.worker.Worker", "--webui-port", str(free_port()), *worker),
        daemon(tmp_path, "worker2", f"{place}.worker.Worker", "--webui-port", str(free_port()), *worker),
    ):
        assert serve.listening(master, 60.0)
        assert answers(directory, "--master", f"spark://127.0.0.1:{master}", "--memory", "1g") == here
