"""A store that cannot be reached is told before an engine starts."""

import os
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from capture.files import CaptureError
from pipeline import jobs
from pipeline.engine import session
from pipeline.input import stored
from pipeline.jobs.opening import opened

DOUBT = (
    "s3://plant/x: AWS Error NETWORK_CONNECTION during HeadBucket operation: Could not resolve host: plant"
)


class Started(Exception):
    """An engine would start now."""


@pytest.fixture
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise CaptureError(DOUBT)

    def start(*_: Any, **__: Any) -> None:
        raise Started

    monkeypatch.setattr(stored, "listing", refuse)
    monkeypatch.setattr(session, "start", start)
    for name in ("AWS_ENDPOINT_URL", "SPARK_REMOTE", *(one for one in os.environ if "proxy" in one.lower())):
        monkeypatch.delenv(name, raising=False)


def begin(*words: str) -> None:
    job = jobs.find("audit")
    with opened(job, job.parsed("s3://plant/x", *words)):
        raise AssertionError


@pytest.mark.parametrize("engine", ["spark", "sail"])
@pytest.mark.usefixtures("without_network")
def test_a_store_that_is_not_reached_is_one_line_and_no_engine_starts(engine: str) -> None:
    with pytest.raises(CaptureError) as told:
        begin("--engine", engine)
    assert str(told.value) == DOUBT


@pytest.mark.usefixtures("without_network")
def test_behind_a_proxy_the_engine_tries_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Started):
        begin("--engine", "spark", "--conf", "spark.hadoop.fs.s3a.proxy.host=10.0.0.1")
    monkeypatch.setenv("HTTPS_PROXY", "http://10.0.0.1:3128")
    with pytest.raises(Started):
        begin("--engine", "sail")
