"""One Spark for all tests of this directory: it takes seconds to start, but a test takes only a second.

With BUSCOUPLER_ENGINE=sail, tests that ask for `spark` get Sail instead.
"""

import contextlib
import io
import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from pipeline import cache
from pipeline.engine import session
from pipeline.engine.choice import SAIL, VARIABLE, Where
from pipeline.errors import PipelineError
from tests.helpers.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ON_SAIL = Where(SAIL, memory="2g")
ON_SPARK = Where(master="local[2]", memory="3g")
_JAVA_OPTIONS: Final = "JDK_JAVA_OPTIONS"  # which Java itself reads


BOTH: Final = [
    pytest.param(("--engine", "spark"), id="spark"),
    pytest.param(
        ("--engine", SAIL), id="sail", marks=pytest.mark.skipif(not find_spec("pysail"), reason="no pysail")
    ),
]
"""Words of a command, for each engine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need Spark; the first of them waits for its start."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def connect_port() -> int:
    """The port on which `spark` is also a Connect server; 0 if Connect's client is not installed."""
    return free_port() if find_spec("grpc") else 0


@pytest.fixture(scope="session")
def spark(connect_port: int) -> Iterator["SparkSession"]:
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install -e '.[pipeline]'")
    on_sail = os.environ.get(VARIABLE) == SAIL
    try:
        local = session.start(ON_SAIL) if on_sail else started(connect_port)
    except PipelineError as error:
        pytest.skip(str(error))
    with session.session(ON_SAIL if on_sail else ON_SPARK, local) as made:
        made.conf.set("spark.sql.shuffle.partitions", "2")
        table = (
            "spark.sql.codegen.aggregate.fastHashMap.capacityBit"  # a large one for each task fills memory
        )
        made.conf.set(table, session.SMALL[table])
        yield made


@pytest.fixture(autouse=True, scope="module")
def let_go() -> Iterator[None]:
    """What the jobs of a module keep is let go at its end, as at the end of a command: memory is small."""
    yield
    cache.release()


def started(connect_port: int) -> session.Local | None:
    """Start the session's Java, which also serves Connect if there is a port for it.

    Raises `PipelineError` if there is no Java.
    """
    before = os.environ.get(_JAVA_OPTIONS)
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(connect_port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    if connect_port:
        words = [before or "", *(f"-D{name}={value}" for name, value in settings.items())]
        os.environ[_JAVA_OPTIONS] = " ".join(words).strip()
    try:
        return session.start(Where(memory=ON_SPARK.memory), quick=True)
    finally:
        os.environ.pop(_JAVA_OPTIONS, None)
        if before is not None:
            os.environ[_JAVA_OPTIONS] = before


def plan(frame: "DataFrame") -> str:
    """Return Spark's plan for it, as text."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()
