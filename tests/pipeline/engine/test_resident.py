"""The Spark that stays behind: the next command comes to the same Java, and it ends as it says."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.helpers import ROOT, alone
from tests.pipeline.engines import QUICK, SHORT_LIVED, has_spark

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.engine import java, server
from pipeline.engine.archives import archive
from pipeline.engine.jvm import until
from pipeline.engine.keeper import Attention
from pipeline.engine.server import IDLE_S
from pipeline.input import sample

END_S = 60.0
COUNTS = "SELECT bus, count(*) AS n FROM frames GROUP BY bus ORDER BY bus"

CODE_OF_A_SESSION = """
import sys
from pipeline.engine.jvm import point_to
from pipeline.engine.resident import session_in

point_to(int(sys.argv[1]), sys.argv[2])
with session_in() as spark:
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.range(100).groupBy("id").count().collect()
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    print(metrics.METRIC_COMPILATION_TIME().getCount())
"""
"""A program that runs a query and prints how many classes that Java has generated until then."""


class Machine:
    """A machine of its own: a runtime directory, and commands that run there."""

    def __init__(self, path: Path) -> None:
        self.place, self.capture = path / "run" / "buscoupler" / "spark", path / "capture"
        self.home = path
        places = {"XDG_RUNTIME_DIR": str(path / "run")}
        if not archive(java.find()).exists():
            (path / "no directory").touch()  # so there is no place for one, which takes long to write
            places |= {"XDG_CACHE_HOME": str(path / "no directory")}
        self._environment = alone() | SHORT_LIVED | places | {"PYTHONPATH": str(ROOT)}
        sample.write(self.capture)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the machine's own directory."""
        return subprocess.run(
            [sys.executable, "-m", "buscoupler", *words],
            capture_output=True, text=True, timeout=300, cwd=self.home, env=self._environment,
        )  # fmt: skip

    def counted(self, *words: str) -> str:
        """Run a small job, and return its answer."""
        done = self.run("pipeline", "sql", str(self.capture), "--json", "-e", COUNTS, *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        return done.stdout

    def last(self, *words: str) -> tuple[int, dict[str, object]]:
        """Run a job that writes, and return its status and its tables."""
        done = self.run("last", str(self.capture), "--json", *words)
        found: dict[str, object] = json.loads(done.stdout)
        found.pop("run")
        return done.returncode, found

    def generated(self) -> int:
        """Ask the resident Spark a query in a session of its own, and return how many classes it has
        generated since it began."""
        words = [sys.executable, "-c", CODE_OF_A_SESSION, str(self.server.port), self.server.secret]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=300, env=self._environment, check=True
        )
        return int(done.stdout)

    @property
    def server(self) -> server.Server:
        found = server.load(self.place)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Machine"]:
    """A machine for both tests."""
    made = Machine(tmp_path_factory.mktemp("machine"))
    yield made
    server.stop(made.place)


@pytest.fixture(scope="module")
def counts(machine: "Machine") -> str:
    """The answer of two commands at once, the first on their machine that a resident Spark serves."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: machine.counted(), range(2))
    assert one == other
    return one


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_ended(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


@pytest.mark.skipif(not has_spark(), reason="pip install -e '.[pipeline]'")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_next_command_comes_to_the_same_spark(machine: Machine, counts: str) -> None:
    first = machine.server  # two at once start one
    assert (machine.place / server.SERVER).stat().st_mode & 0o777 == 0o600
    # Sail's answers are Spark's (tests/pipeline/engine/test_elsewhere.py).
    private = QUICK or ("--no-resident",)
    assert machine.counted(*private) == counts
    due = machine.last(*private)
    damaged = next((machine.capture / "capture").glob("date=*/gateway=*")) / "damaged.parquet"
    damaged.write_bytes(b"PAR1")
    found = machine.last("--skip-bad", "--parquet", "out")
    damaged.unlink()
    assert (due[0], found) == (0, (3, due[1]))
    assert any((machine.home / "out" / "last" / "last").glob("*.parquet"))  # not where the server runs
    assert machine.server == first


@pytest.mark.skipif(not has_spark(), reason="pip install -e '.[pipeline]'")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_next_command_generates_no_code_that_there_is(machine: Machine, counts: str) -> None:
    before = machine.generated()
    assert before > 0
    assert machine.generated() == before


@pytest.mark.skipif(not has_spark(), reason="pip install -e '.[pipeline]'")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_keeper_takes_java_along_and_the_next_command_starts_one_that_can_be_stopped(
    machine: Machine, counts: str
) -> None:
    keeper = machine.server.pid
    of_keeper = children(keeper)
    os.kill(keeper, signal.SIGKILL)
    assert until(lambda: all(map(has_ended, [keeper, *of_keeper])), END_S)
    assert server.load(machine.place) is None  # although its file is there
    assert machine.counted() == counts
    second = machine.server.pid
    assert second != keeper
    assert machine.run("pipeline", "stop").stdout == "Spark has ended\n"
    assert has_ended(second)
    assert machine.run("pipeline", "stop").stdout == "no Spark is running\n"


def test_it_ends_when_nobody_has_used_it_for_ten_minutes(tmp_path: Path) -> None:
    with (tmp_path / "use").open("ab") as keeps, (tmp_path / "use").open("ab") as uses:
        attention = Attention(keeps, 0.0)

        def look(now_s: float, has_room: bool = True) -> str:
            what = attention.look(now_s, has_room)
            if what != "end":
                attention.let_in()
            return what

        fcntl.flock(uses, fcntl.LOCK_SH)
        assert look(0.0) == "busy"
        assert look(IDLE_S + 1) == "busy"
        fcntl.flock(uses, fcntl.LOCK_UN)
        began = IDLE_S + 1
        assert [look(began + s) for s in (0.1, 0.2)] == ["tidy", "idle"]
        assert look(began + 1.9, has_room=False) == "idle"  # other work goes first
        assert [look(began + s) for s in (2.0, 3.0)] == ["rehearse", "idle"]
        fcntl.flock(uses, fcntl.LOCK_SH)
        assert look(began + 4) == "busy"
        fcntl.flock(uses, fcntl.LOCK_UN)
        assert [look(began + 4 + s) for s in (0.1, 9.0, IDLE_S)] == ["tidy", "idle", "idle"]
        assert look(began + 5 + IDLE_S) == "end"
        with pytest.raises(BlockingIOError):  # who comes now waits for its end
            fcntl.flock(uses, fcntl.LOCK_SH | fcntl.LOCK_NB)
