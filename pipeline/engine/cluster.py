"""A cluster that is lost while a job works on it: Spark would wait for ever that its workers come back.

As long as a worker is left, there is nothing to do: Spark gives it the work of dead ones, and needs no master
for that.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline import reach
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOST_S: Final = 60.0
"""A job ends after this time without a worker. Who supervises workers has started one again by then."""
_LOOK_S: Final = 2.0
_END_S: Final = 20.0
_SCHEME: Final = "spark://"
_GIVES_BACK: Final = "spark.dynamicAllocation.enabled"


class Load(NamedTuple):
    """The number of workers that a command has, and whether it has work for them."""

    workers: int
    waits: bool


class Patience:
    """The judgement of a cluster that gives a command no worker. `url` is its master's.

    `gives_back`: the command gives idle workers back, and may wait for them as for its first ones.
    """

    def __init__(self, url: str, gives_back: bool = False) -> None:
        self._url, self._gives_back, self._had, self._told = url, gives_back, False, False
        self._since_s: float | None = None

    def lost(self, now_s: float, load: Load, doubt: Callable[[], str]) -> str:
        """Say in a line that the cluster is lost; "" while it is not. `doubt` asks why its master does not
        answer, and names it ("" if it answers).

        A command that never had a worker waits as long as the master answers: others may have them all.
        """
        self._had = self._had or (load.workers > 0 and not self._gives_back)
        if load.workers or not load.waits:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s
        if not self._is_long(now_s):
            return ""
        reason = doubt()
        if not (reason or self._had):
            return ""
        return (
            f"{f'{reason}, and' if reason else f'{self._url}:'} the job has had no worker for {LOST_S:.0f} s"
        )

    def news(self, now_s: float) -> str:
        """Say in a line, once, that a command waits for its first worker; "" if there is nothing to say."""
        if self._told or self._had or not self._is_long(now_s):
            return ""
        self._told = True
        return f"{self._url}: no worker has been free for {LOST_S:.0f} s; waiting"

    def _is_long(self, now_s: float) -> bool:
        return self._since_s is not None and now_s - self._since_s >= LOST_S


@contextmanager
def watched(
    spark: "SparkSession", is_remote: bool, warn: Callable[[str], None]
) -> Iterator[Callable[[], bool]]:
    """Look after the cluster of a session in the block, and yield a function that tells whether it is lost.

    If it is, its jobs are ended, and what they raise becomes a `PipelineError` that names the master. Where
    the session `is_remote`, its server has the cluster.
    """
    master = "" if is_remote else spark.sparkContext.master or ""
    if not master.startswith(_SCHEME):
        yield lambda: False
        return
    watch = _Watch(spark.sparkContext, master, warn)
    try:
        yield lambda: bool(watch.lost)
    except Exception as error:
        if watch.lost:
            raise PipelineError(watch.lost) from error
        raise
    finally:
        watch.close()


class _Watch:
    """A thread that looks after the cluster of a context; `lost` is what it has found."""

    def __init__(self, context: Any, master: str, warn: Callable[[str], None]) -> None:
        self.lost = ""
        self._context, self._master, self._warn = context, master, warn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="cluster", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        with suppress(Exception):  # py4j's: Java has gone, and who works there is told
            patience = Patience(self._master, self._java().getConf().getBoolean(_GIVES_BACK, False))
            while not (self.lost or self._ended.wait(_LOOK_S)):
                self._judge(patience)
            if self.lost:
                self._java().stop()  # not the jobs of now alone: each later one would wait again

    def _judge(self, patience: Patience) -> None:
        load = self._load()  # Java answers late if it collects its garbage
        now_s = time.monotonic()
        self.lost = patience.lost(now_s, load, lambda: reach.doubt(self._master))
        if news := patience.news(now_s):
            self._warn(news)

    def _load(self) -> Load:
        tracker = self._java().statusTracker()
        workers = len(tracker.getExecutorInfos()) - 1  # we are one of them
        return Load(workers, waits=bool(len(tracker.getActiveJobIds())))

    def _java(self) -> Any:
        return self._context._jsc.sc()  # noqa: SLF001 (Python has no name for executors)

    def close(self) -> None:
        """End, at the latest after what Java is being asked."""
        self._ended.set()
        self._thread.join(_END_S)
