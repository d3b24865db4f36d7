"""The engines of the pipeline's tests: a Spark that lasts from module to module, and a Sail for one module.

A process works with one of them at a time, because pyspark does. So what runs on Sail has rooms of its own
(tests/helpers/rooms.py), and comes after Spark where all tests run in one process.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from pipeline.engine import jars, java, session
from pipeline.engine.choice import SAIL, SPARK, VARIABLE, Where
from pipeline.errors import PipelineError
from tests.helpers import CONNECT_MODE
from tests.helpers.ports import free_port
from tests.pipeline import archives

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDS: Final = {SPARK: "Spark", SAIL: "Sail"}
"""The engines by their names in the ids of tests, from which rooms are told."""
QUICK: Final = ("--engine", SAIL) if find_spec("pysail") else ()
"""Words of a command, for the engine that starts at once. What Spark answers is compared with it in
tests/pipeline/engine."""

_INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings by which Spark interprets plans instead of compiling them: of few rows that costs half as much.
What users get is held by tests in `compiled`."""
_COMPILED: Final = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_JAVA_OPTIONS: Final = "JDK_JAVA_OPTIONS"  # which Java itself reads
_COMPILES_FAST: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_VERIFIES_NOTHING: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
_PLAIN: Final = (
    _COMPILES_FAST,
    _VERIFIES_NOTHING,
    *(f"-D{name}={value}" for name, value in _INTERPRETED.items()),
)
SHORT_LIVED: Final = {_JAVA_OPTIONS: " ".join(_PLAIN)}
"""The environment of a Java that runs for seconds: it compiles fast rather than well, and no plans, and does
not verify Spark's own classes, which takes a third of its time where no archive has them."""
_ON_SAIL: Final = Where(SAIL, memory="2g")
_ON_SPARK: Final = Where(master="local[2]", memory="3g")


def asked_for(wanted: tuple[str, ...]) -> list[str]:
    """Return the engines that a test runs on, of those `wanted`: that which the environment names, or those
    that are installed; Spark if none is."""
    one = os.environ.get(VARIABLE)
    if one:
        return [one]
    found = [name for name in wanted if name == SPARK or find_spec("pysail")]
    return found or [SPARK]


def has_spark() -> bool:
    """Return whether Spark and a Java are installed."""
    try:
        return find_spec("pyspark") is not None and jars.installed() and bool(java.find())
    except PipelineError:
        return False


class Engines:
    """Engines for tests. `connect_port`: on which Spark is also a Connect server; 0 if nowhere."""

    def __init__(self, connect_port: int) -> None:
        self.connect_port = connect_port
        self._spark: SparkSession | None = None
        self._at_end = ExitStack()
        self._writes_archive = False

    def spark(self) -> "SparkSession":
        """Return the session of the Spark that lasts, which starts if it does not run. Skips the test if it
        cannot."""
        if self._spark is None:
            if find_spec("pyspark") is None:
                pytest.skip("pyspark is not installed: pip install -e '.[pipeline]'")
            try:
                self._writes_archive = archives.is_due()
                local = _started(self.connect_port, self._writes_archive)
            except PipelineError as error:
                pytest.skip(str(error))
            self._spark = self._at_end.enter_context(session.session(_ON_SPARK, local))
            for name, value in session.SMALL.items():
                self._spark.conf.set(name, value)
        return self._spark

    @contextmanager
    def sail(self) -> "Iterator[SparkSession]":
        """Run a Sail in the block, and no Spark."""
        self.close()
        try:
            with session.session(_ON_SAIL, session.start(_ON_SAIL)) as made:
                yield made
        finally:
            os.environ.pop(CONNECT_MODE, None)

    def archive(self) -> None:
        """Let the Spark that lasts write the archive of classes, once, if there was none when it started."""
        if self._spark is not None and self._writes_archive:
            self._writes_archive = False
            archives.write(self._spark)

    def close(self) -> None:
        """End Spark. Idempotent."""
        self._spark = None
        self._at_end.close()


@cache
def of_process() -> Engines:
    """Return the engines of this process. Spark is a Connect server too, if Connect's client is installed."""
    return Engines(free_port() if find_spec("grpc") else 0)


def _started(connect_port: int, writes_archive: bool) -> session.Local | None:
    """Start Spark's Java, which also serves Connect if there is a port for it. Raises `PipelineError` if
    there is no Java."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers of Connect's clients
    before = os.environ.get(_JAVA_OPTIONS)
    settings = dict(_INTERPRETED)
    if connect_port:
        settings |= {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": str(connect_port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
        }
    words = [f"-D{name}={value}" for name, value in settings.items()]
    words += [archives.NOTES] if writes_archive else []
    os.environ[_JAVA_OPTIONS] = " ".join(filter(None, (before, *words)))
    try:
        return session.start(Where(memory=_ON_SPARK.memory), quick=True)
    finally:
        os.environ.pop(_JAVA_OPTIONS, None)
        if before is not None:
            os.environ[_JAVA_OPTIONS] = before


@contextmanager
def compiled(spark: "SparkSession") -> Iterator[None]:
    """Let Spark compile plans in the block, as it does for users."""
    for name, value in _COMPILED.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in _COMPILED:
            spark.conf.unset(name)


def plan(frame: "DataFrame") -> str:
    """Return Spark's plan for it, as text."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()
