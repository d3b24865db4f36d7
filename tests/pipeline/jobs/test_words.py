"""What engines raise becomes one line of ours, which names a server that has gone."""

import socket

import pytest

pytest.importorskip("pyarrow")

from pipeline.errors import PipelineError, cause_of
from pipeline.jobs.words import in_one_line
from tests.helpers.ports import free_port

WORDS = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "ping timeout"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""


class RpcError(Exception):
    """An error of grpc's."""


RpcError.__module__ = "grpc._channel"


def told(remote: str) -> str:
    with pytest.raises(PipelineError) as found, in_one_line(None, "s3://plant/x", remote):
        raise RpcError(WORDS)
    return str(found.value)


def test_a_server_that_has_gone_is_named() -> None:
    remote = f"sc://127.0.0.1:{free_port()}"
    assert told(remote) == f"the server has gone: {remote}: connection refused"


def test_a_server_that_is_still_there_is_named_with_what_the_connection_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        remote = f"sc://127.0.0.1:{server.getsockname()[1]}"
        assert told(f"{remote}/;token=secret") == f"Spark at {remote}: ping timeout"


def test_a_connection_tells_its_details_and_not_the_first_of_its_lines() -> None:
    assert cause_of(WORDS) == "ping timeout"
