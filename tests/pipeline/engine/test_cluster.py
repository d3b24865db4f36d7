"""A cluster that is lost while a job works on it ends the job in one line; one that is only slow does not."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from pipeline.engine import cluster
from pipeline.engine.cluster import LOST_S, Load, Patience, watched
from pipeline.errors import PipelineError
from tests.helpers.ports import free_port

MASTER = "spark://head:7077"
NONE, TWO, NOTHING_TO_DO = Load(0, waits=True), Load(2, waits=True), Load(0, waits=False)


def dead() -> str:
    return f"{MASTER}: connection refused"


def alive() -> str:
    return ""


def looked(patience: Patience, doubt: Callable[[], str], *loads: Load) -> list[str]:
    """Look as often as there are loads, half of `LOST_S` apart. Return what is said, each thing once."""
    said = [patience.lost(number * LOST_S / 2, load, doubt) for number, load in enumerate(loads)]
    return [*dict.fromkeys(filter(None, said))]


@pytest.mark.parametrize(
    ("doubt", "line"),
    [
        (dead, f"{MASTER}: connection refused, and the job has had no worker for 60 s"),
        (alive, f"{MASTER}: the job has had no worker for 60 s"),
    ],
    ids=["master and workers", "workers alone"],
)
def test_a_job_that_has_lost_all_its_workers_is_told_so_after_a_minute(
    doubt: Callable[[], str], line: str
) -> None:
    patience = Patience(MASTER)
    assert looked(patience, doubt, TWO, NONE, NONE) == []
    assert patience.lost(LOST_S * 3 / 2, NONE, doubt) == line


def test_a_master_that_dies_before_it_gives_a_worker_is_told_too() -> None:
    assert looked(Patience(MASTER), dead, NONE, NONE, NONE) == [
        f"{MASTER}: connection refused, and the job has had no worker for 60 s"
    ]


def test_as_long_as_one_worker_is_left_no_master_is_asked_for() -> None:
    def asked() -> str:
        raise AssertionError

    one = Load(1, waits=True)
    assert looked(Patience(MASTER), asked, one, one, one, one) == []


def test_workers_that_come_back_and_jobs_that_wait_for_none_begin_the_minute_anew() -> None:
    assert looked(Patience(MASTER), dead, TWO, NONE, TWO, NONE, TWO) == []
    assert looked(Patience(MASTER), dead, TWO, NONE, NOTHING_TO_DO, NONE, NONE) == []


def test_a_job_in_the_queue_of_a_busy_cluster_waits_on_and_says_so_once() -> None:
    patience = Patience(MASTER)
    assert looked(patience, alive, *[NONE] * 9) == []
    assert [patience.news(LOST_S * number) for number in range(4)] == [
        "", f"{MASTER}: no worker has been free for 60 s; waiting", "", ""
    ]  # fmt: skip
    assert looked(patience, alive, TWO, NONE) == []
    assert patience.news(LOST_S * 9) == ""


def test_who_gives_idle_workers_back_waits_for_them_as_for_the_first() -> None:
    patience = Patience(MASTER, gives_back=True)
    assert looked(patience, alive, TWO, NOTHING_TO_DO, NONE, NONE, NONE, NONE) == []
    assert patience.news(LOST_S * 3) == f"{MASTER}: no worker has been free for 60 s; waiting"
    assert patience.lost(LOST_S * 3, NONE, dead).startswith(f"{MASTER}: connection refused, and")


class Java:
    """A context of Spark's in Java, with a job that never gets a worker."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def getConf(self) -> "Java":
        return self

    def getBoolean(self, _: str, default: bool) -> bool:
        return default

    def statusTracker(self) -> "Java":
        return self

    def getExecutorInfos(self) -> list[str]:
        return ["us"]

    def getActiveJobIds(self) -> list[int]:
        return [1]

    def stop(self) -> None:
        self.stopped.set()


class Gone(Java):
    """A context whose Java has been killed."""

    def statusTracker(self) -> Java:
        self.stop()
        raise ConnectionRefusedError


class Busy(Java):
    """A context whose Java answers after a long collection of garbage, at first without workers."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self._clock, self._asked = clock, 0

    def getExecutorInfos(self) -> list[str]:
        self._asked += 1
        self._clock[0] += 2 * LOST_S if self._asked == 2 else 1.0
        if self._asked == 5:
            self.stop()
        return ["us"] if self._asked in (2, 3) else ["us", "a worker"]


def session_of(java: Java, master: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: java)))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOST_S", 0.0)
    monkeypatch.setattr(cluster, "_LOOK_S", 0.001)


def failing(session: Any, java: Java) -> None:
    """Work until the context is stopped, as a job does that waits for its workers."""
    with watched(session, False, print) as is_lost:
        assert java.stopped.wait(30)
        assert is_lost()
        raise RuntimeError("Job 1 cancelled because SparkContext was shut down")


@pytest.mark.usefixtures("at_once")
def test_what_a_job_raises_on_a_cluster_that_is_lost_becomes_the_line_that_names_the_master() -> None:
    java, master = Java(), f"spark://127.0.0.1:{free_port()}"
    with pytest.raises(PipelineError) as told:
        failing(session_of(java, master), java)
    assert str(told.value) == f"{master}: connection refused, and the job has had no worker for 0 s"


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_of_a_java_that_has_gone_the_job_itself_tells() -> None:
    java = Gone()
    with pytest.raises(RuntimeError):
        failing_without_loss(session_of(java, MASTER), java)


def failing_without_loss(session: Any, java: Java) -> None:
    with watched(session, False, print) as is_lost:
        assert java.stopped.wait(30)
        assert not is_lost()
        raise RuntimeError("Java has gone")


def test_a_long_collection_of_garbage_is_no_time_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(cluster, "_LOOK_S", 0.001)
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    java = Busy(clock)
    with watched(session_of(java, MASTER), False, print) as is_lost:
        assert java.stopped.wait(30)
        assert not is_lost()


@pytest.mark.parametrize(("master", "is_remote"), [("local[*]", False), ("yarn", False), (MASTER, True)])
@pytest.mark.usefixtures("at_once")
def test_what_is_no_cluster_of_ours_is_left_alone(master: str, is_remote: bool) -> None:
    before = threading.active_count()
    with watched(session_of(Java(), master), is_remote, print) as is_lost:
        assert threading.active_count() == before
        assert not is_lost()


@pytest.mark.usefixtures("at_once")
def test_nothing_looks_on_after_the_block() -> None:
    before = threading.active_count()
    with watched(session_of(Java(), f"spark://127.0.0.1:{free_port()}"), False, print):
        pass
    assert threading.active_count() == before
