"""One Spark for all tests of this directory: it takes seconds to start, and a test a second."""

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from pipeline import java, session
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = argparse.Namespace(master="local[2]", remote=None, memory="2g")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes Spark is marked so; the first such test waits for it to start."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install -e '.[pipeline]'")
    try:
        java.find()
    except PipelineError as error:
        pytest.skip(str(error))
    jvm = session.start(argparse.Namespace(**{**vars(OPTIONS), "master": None}), quick=True)
    with session.session(OPTIONS, jvm) as made:
        made.conf.set("spark.sql.shuffle.partitions", "2")
        yield made
