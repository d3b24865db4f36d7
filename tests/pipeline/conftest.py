"""Sessions for the tests of this directory.

A test with the fixture `spark` gets a session of Spark; below the mark `engines` it gets one of each engine
that the mark names. Sail answers an audit of a few rows ten times as fast, and some tests hold that both say
the same. With BUSCOUPLER_ENGINE all run on that engine.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pipeline import cache
from pipeline.engine.choice import SAIL, SPARK
from tests.pipeline.engines import IDS, Engines, asked_for, of_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that needs a session on the engines that its mark `engines` names, or on Spark."""
    if "spark" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("engines")
        found = asked_for(mark.args if mark else (SPARK,))
        metafunc.parametrize("spark", found, ids=[IDS[one] for one in found], indirect=True, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a session; the first of them waits for its start."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    """The engines of this process."""
    yield of_process()
    of_process().close()


@pytest.fixture(scope="session")
def connect_port(engines: Engines) -> int:
    """The port on which `spark` is also a Connect server; 0 if Connect's client is not installed."""
    return engines.connect_port


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest, engines: Engines) -> Iterator["SparkSession"]:
    """A session of the engine that the test asks for. What jobs keep is let go at the end of a module, as at
    the end of a command: memory is small."""
    if request.param == SAIL:
        with engines.sail() as made:
            yield made
            cache.release()
    else:
        yield engines.spark()
        engines.archive()
        cache.release()
