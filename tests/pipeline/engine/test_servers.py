"""Jobs give the same rows elsewhere: on a resident server, on a cluster of which a worker dies, under
spark-submit, and on Sail beside a client alone or an object store.

What is compared with are Sail's answers, which are Spark's (tests/pipeline/engine/test_elsewhere.py). A Spark
that starts runs few jobs: that they all give the same over Connect is held there, on one that is warm. With
BUSCOUPLER_EVERY_JOB set, the cluster runs all of them, which takes minutes.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

import psutil
import pytest
from packaging.requirements import Requirement

from tests.helpers import ROOT, alone, s3
from tests.helpers.ports import free_port
from tests.rigs.planted import generate

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("pysail")

from pipeline.engine import choice, java, serve
from pipeline.engine.jars import spark_home
from pipeline.engine.jvm import until
from pipeline.engine.server import token_file
from tests.pipeline.engines import QUICK, SHORT_LIVED
from tests.pipeline.every_job import TABLES, Answers, without_all_but
from tests.pipeline.processes import PLAN, in_turn, on_sail, tables, there
from tests.rigs.cluster import FEW, Cluster, with_archive

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CLIENT: Final = "pyspark-client==4.2.0"
BESIDE: Final = ("pysail", "pandas", "pyarrow", "numpy", "PyYAML", "pynng")
"""What our jobs need beside the client."""
ON_CLUSTER: Final = tuple(TABLES) if "BUSCOUPLER_EVERY_JOB" in os.environ else ("audit",)
AT_SERVER: Final = ("tokens",)
"""The job that is not asked for over Connect in tests/pipeline/engine/test_elsewhere.py."""
FROM_STORE: Final = ("audit", "rates", "last", "failovers")
NO_PAGES: Final = ("--conf", "spark.ui.enabled=false")


@pytest.fixture(scope="module", autouse=True)
def short_lived() -> Iterator[None]:
    """Let each Java of this module compile as little as it can."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT_LIVED.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture")
    generate(path, PLAN)
    return path


@pytest.fixture(scope="module")
def due(directory: Path) -> Answers:
    return on_sail(directory)


@contextmanager
def ended(process: "subprocess.Popen[bytes]", port: int, number: signal.Signals) -> Iterator[None]:
    """Wait until a server listens, and end it by a signal after the block: then none of its processes is
    left."""
    try:
        assert serve.listening(port, 120.0, process)
        yield
        process.send_signal(number)
        assert process.wait(60) == 0
        assert not serve.listening(port, 0.5)
        left = (" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))
        assert not [words for words in left if f"localhost:{port}/" in words], "its rehearsal"
    finally:
        process.kill()


@pytest.mark.slow
def test_a_server_that_is_interrupted_leaves_no_process() -> None:
    pytest.importorskip("grpc")
    port = free_port()
    words = ["-m", "buscoupler", "pipeline", "serve", "--port", str(port), "--memory", "1g"]
    with ended(subprocess.Popen([sys.executable, *words], cwd=ROOT), port, signal.SIGINT):
        pass


STRANGER: Final = """
import sys
from pyspark.sql import SparkSession

for url in sys.argv[1:]:
    try:
        print("taken:", SparkSession.builder.remote(url).create().range(3).count())
    except Exception as error:
        print("refused:", " ".join(str(error).split()))
"""


def of_a_stranger(place: Path, *urls: str) -> list[str]:
    """Return what a client that knows no token of ours says of each URL."""
    environment = alone() | {"XDG_RUNTIME_DIR": str(place)}
    words = [sys.executable, "-c", STRANGER, *urls]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=place, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SERVE: Final = """
import sys
from pipeline.engine.serve import serve

sys.exit(serve(int(sys.argv[1]), "2g", "tests.pipeline.resting"))
"""
"""The command `pipeline serve`, but for its rehearsal, which costs as much as a test."""


def rests_beside(pid: int) -> bool:
    return any("tests.pipeline.resting" in one.cmdline() for one in psutil.Process(pid).children())


@pytest.mark.slow
def test_a_resident_connect_server_gives_the_same_and_leaves_no_process_when_it_is_terminated(
    directory: Path, due: Answers, tmp_path: Path
) -> None:
    pytest.importorskip("grpc")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    with ended(process, port, signal.SIGTERM):
        assert until(lambda: token_file(port).exists(), 60.0, process)
        assert until(lambda: rests_beside(process.pid), 60.0, process)
        words = ["--remote", f"sc://127.0.0.1:{port}", *without_all_but(*AT_SERVER)]
        assert there(directory, *words) == {job: due[job] for job in AT_SERVER}
        said = of_a_stranger(tmp_path, f"sc://localhost:{port}", f"sc://localhost:{port}/;token=guessed")
        assert len(said) == 2
        assert all(line.startswith("refused: ") and "UNAUTHENTICATED" in line for line in said), said


@pytest.mark.slow
def test_spark_submit_runs_our_command_and_gives_the_same(directory: Path) -> None:
    words = ["rates", str(directory), "--json", "--quiet", "--seconds", "1000"]
    programs = Path(sys.executable).parent
    environment = alone() | {"JAVA_HOME": str(java.find().home), "PATH": f"{programs}:{os.environ['PATH']}"}
    jars, more = with_archive()
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", *FEW, *NO_PAGES]
    submit += ["--driver-class-path", jars, "--driver-java-options", more]
    done = subprocess.run(
        [*submit, str(ROOT / "examples" / "submit.py"), *words],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("run")["engine"] == "spark"
    assert found == tables("-m", "buscoupler", *words, *QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("job", ON_CLUSTER)
def test_a_cluster_of_four_workers_one_of_which_is_killed_with_rows_that_others_need_gives_the_same(
    directory: Path, due: Answers, tmp_path: Path, job: str
) -> None:
    with closing(Cluster(tmp_path, 4)) as cluster, ThreadPoolExecutor(1) as beside:
        words = [*cluster.words, *FEW, *without_all_but(job)]
        found = beside.submit(there, directory, *words)
        assert cluster.kill(found.done)
        assert found.result() == {job: due[job]}


def client_alone() -> str:
    """The Python of an environment with Spark's client, but not Spark, which is made once.

    What the client and our jobs need besides are links to what is installed here, which is compiled already.
    """
    home = Path(sys.prefix) / "sail"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            venv.create(home, clear=True)
            pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
            words = [*pip, "install", "-q", "--no-compile", "--no-deps", CLIENT]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"it cannot be installed here: {done.stderr[-300:]}")
            (place,) = home.glob("lib/python*/site-packages")
            link_what_is_needed(place)
            (home / "complete").touch()
    return str(home / "bin" / "python")


def link_what_is_needed(place: Path) -> None:
    """Link what the client and our jobs need, and what that needs, as each says of itself."""
    (client,) = (one for one in metadata.distributions(path=[str(place)]) if "pyspark" in one.name)
    left, known = [*needed_by(client), *BESIDE], set[str]()
    while left:
        name = left.pop()
        if name not in known:
            known.add(name)
            one = metadata.distribution(name)
            left += needed_by(one)
            tops = {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}
            for top in (top for top in tops if not (place / top).exists()):  # some are of several
                (place / top).symlink_to(Path(str(one.locate_file(top))).resolve())


def needed_by(one: metadata.Distribution) -> list[str]:
    wanted = map(Requirement, one.requires or ())
    return [want.name for want in wanted if not want.marker or want.marker.evaluate({"extra": ""})]


@pytest.mark.slow
def test_sail_gives_the_same_beside_a_client_alone(directory: Path, due: Answers) -> None:
    assert on_sail(directory, client_alone()) == due


@pytest.fixture(scope="module")
def store(directory: Path) -> Iterator[dict[str, str]]:
    """Settings of clients of a server of S3's protocol, with the capture in bucket `plant`."""
    pytest.importorskip("moto")
    with s3.served() as port:
        s3.client(port).create_bucket(Bucket="plant")
        s3.put(port, directory / "capture", "capture")
        yield s3.environment(port)


@pytest.mark.slow
def test_sail_gives_the_same_from_an_object_store(directory: Path, store: dict[str, str]) -> None:
    def asked(where: str) -> list[list[str]]:
        return [[job, where, "--json", "--quiet", "--engine", choice.SAIL] for job in FROM_STORE]

    done = in_turn(*asked("s3a://plant/capture"), *asked(str(directory)), more=store)
    assert [one.said for one in done if one.said] == []
    found = [one.tables for one in done]
    by_url, by_path = found[: len(FROM_STORE)], found[len(FROM_STORE) :]
    assert by_url == by_path
    assert all(any(one.values()) for one in by_url)
