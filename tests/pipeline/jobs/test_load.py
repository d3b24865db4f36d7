"""Captures go to a table."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from pipeline.errors import PipelineError
from pipeline.jobs import find
from tests.helpers.ports import free_port

LOAD = find("load")


@pytest.mark.parametrize("delta", [[], ["--delta"]])
def test_a_store_that_is_dead_is_one_line_with_its_address(delta: list[str], tmp_path: Path) -> None:
    dead = f"127.0.0.1:{free_port()}"
    options = LOAD.parsed(
        str(tmp_path), "--to", f"s3://a/b?endpoint_override={dead}&scheme=http&region=us-east-1", *delta
    )
    assert LOAD.process is not None
    with pytest.raises(PipelineError) as told:
        LOAD.process(options)
    assert str(told.value) == f"s3://a/b: http://{dead}: connection refused"
