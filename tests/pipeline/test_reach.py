"""What does not answer is one line with its address, before an engine starts."""

import socket
from collections.abc import Iterator

import pytest

from pipeline import reach
from pipeline.errors import PipelineError
from tests.helpers.ports import free_port


@pytest.fixture
def there() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


DEAD = {
    "a Connect server": "sc://127.0.0.1:{}/;token=x",
    "a master": "spark://127.0.0.1:{}",
    "one of two masters": "spark://127.0.0.1:{0},127.0.0.1:{0}",
    "Kubernetes": "k8s://http://127.0.0.1:{}",
    "HDFS": "hdfs://127.0.0.1:{}/plant/capture",
}


@pytest.mark.parametrize("name", DEAD)
def test_a_server_that_does_not_listen_is_named(name: str, there: int) -> None:
    url = DEAD[name].format(free_port())
    with pytest.raises(PipelineError) as told:
        reach.check(url)
    assert str(told.value) == f"{url}: connection refused"
    reach.check(DEAD[name].format(there))


def test_one_master_of_several_is_enough(there: int) -> None:
    reach.check(f"spark://127.0.0.1:{free_port()},127.0.0.1:{there}")


@pytest.mark.parametrize("by_url", [True, False], ids=["by the URL", "by the environment"])
def test_the_server_of_a_store_is_named(by_url: bool, there: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = free_port()
    said = f"?endpoint_override=127.0.0.1:{dead}&scheme=http" if by_url else ""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{there if by_url else dead}")
    with pytest.raises(PipelineError, match=f"s3://plant/x: http://127.0.0.1:{dead}: connection refused"):
        reach.check(f"s3a://plant/x{said}")


@pytest.mark.parametrize(
    "url", ["local[2]", "yarn", "", "hdfs://nameservice/x", "file:///x", "s3://amazons/own", "spark://"]
)
def test_what_has_no_address_is_left_to_the_engine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    reach.check(url)


@pytest.mark.parametrize("url", ["s3://", "s3a:///capture", "s3://?scheme=http"])
def test_a_store_without_a_bucket_is_one_line(url: str) -> None:
    with pytest.raises(PipelineError, match="no bucket in it"):
        reach.check_place(url)
