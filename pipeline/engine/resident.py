"""A resident Spark on this machine: the first command leaves it behind, so that the next ones need not start
and compile everything again.

A *keeper* (`pipeline.engine.keeper`) owns Java. Commands of the same user find it by a file that only the
user can read, and hold a lock while they use it. It ends after `IDLE_S` in which nobody did. Its Java and
its settings are those of a command's own, so that nothing but the time differs.
"""

import fcntl
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.machine.permissions import make_private
from pipeline import cache
from pipeline.engine import java
from pipeline.engine.archives import archive
from pipeline.engine.jvm import (
    START_S,
    forget_gateway,
    hush,
    last_words,
    point_to,
    same_interrupts,
    until,
)
from pipeline.engine.python_side import import_pyspark
from pipeline.engine.server import IDLE_S, LOG, USE, Server, directory, load, stop, took
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT: Final = (
    f"Spark stays for {IDLE_S / 60:.0f} minutes, and the next command is faster "
    "(`buscoupler pipeline stop` ends it)"
)


def key_of(memory: str) -> str:
    """Return what two commands must share to share a Spark: versions of all parts, and its memory."""
    from importlib import metadata

    parts = metadata.version("buscoupler"), metadata.version("pyspark"), str(archive(java.find())), memory
    return hashlib.sha256("\n".join((*parts, sys.executable)).encode()).hexdigest()[:16]


def enter(memory: str, settings: Mapping[str, str], rehearsal: str) -> "Resident | None":
    """Find the resident Spark, or start it with `settings`; the module `rehearsal` runs small jobs on it.

    None if it cannot be had: there is no place for its files, or one with other settings is at work.
    """
    place = directory()
    try:
        make_private(place)  # under sudo it would be another user's
        key = key_of(memory)
        other = load(place)
        if other is not None and other.key != key and not (_is_idle(place) and stop(place)):
            return None
        return Resident(place, key, [memory, rehearsal, json.dumps(settings)])
    except OSError:
        return None


def _is_idle(place: Path) -> bool:
    with (place / USE).open("ab") as file:
        return took(file, fcntl.LOCK_EX)


class Resident:
    """The resident Spark as one command uses it. `connect()` waits for it."""

    at_once: Final = True  # the keeper stops what is left
    stays_min: Final = round(IDLE_S / 60)

    def __init__(self, place: Path, key: str, words: Sequence[str]) -> None:
        """Note that it is used, and start it if it does not run. Raises `OSError`."""
        self._place, self._key = place, key
        self._use = (place / USE).open("ab")
        fcntl.flock(self._use, fcntl.LOCK_SH)  # for a moment the keeper may have it alone
        self._keeper = None if self._server() else started(place, [key, *words])

    @property
    def begins(self) -> str:
        return "starting Spark" if self._keeper else "the resident Spark"

    @property
    def hint(self) -> str:
        return _HINT if self._keeper else ""

    def _server(self) -> Server | None:
        found = load(self._place)
        return found if found is not None and found.key == self._key else None

    def connect(self) -> str:
        """Wait until it runs, and let pyspark find it by the environment. Returns "". Raises
        `PipelineError` with the last line of its log."""
        import_pyspark()
        until(lambda: self._server() is not None, START_S, self._keeper)
        found = self._server()
        if found is None:
            raise PipelineError(f"the resident Spark did not start: {last_words(self._place / LOG)}")
        point_to(found.port, found.secret)
        return ""

    @contextmanager
    def attached(self) -> "Iterator[SparkSession]":
        """Wait for it and open a session of our own in it. At the end let go of what that has cached, and of
        it."""
        try:
            self.connect()
            with session_in() as spark:
                try:
                    yield spark
                finally:
                    cache.release()
        finally:
            self.close()

    def close(self) -> None:
        """Let the resident Spark go on without this command. Idempotent."""
        forget_gateway(ends=False)
        self._use.close()


@contextmanager
def session_in() -> "Iterator[SparkSession]":
    """Open a session in the Spark that the environment names, whose context others made and use."""
    # Private names of pyspark's: it has no others for a program that comes to a context of Java's.
    # ruff: noqa: SLF001
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from pipeline.engine.lookups import remember

    hush()
    gateway = launch_gateway()  # type: ignore[no-untyped-call]  # that is there: it launches none
    SparkContext._ensure_initialized(gateway=gateway)
    remember()
    java_context = gateway.jvm.JavaSparkContext(gateway.jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jconf=java_context.getConf())
    with same_interrupts():
        context = SparkContext(gateway=gateway, jsc=java_context, conf=conf)
    try:
        yield SparkSession(context).newSession()  # with settings of its own
    finally:
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def started(place: Path, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a keeper in a session of its own, so that it outlives us and no Ctrl-C reaches it."""
    command = [sys.executable, "-P", "-m", "pipeline.engine.keeper", str(place), *words]
    with (place / LOG).open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
