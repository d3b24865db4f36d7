"""A server of S3's protocol on loopback (moto), and captures in its buckets."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pipeline.engine.jvm import until
from tests.helpers.ports import free_port


@contextmanager
def served(log: int | IO[bytes] = subprocess.DEVNULL) -> Iterator[int]:
    """Run a server, which writes a line for each request to `log`. Yield its port.

    It is a process: a client that holds the interpreter would wait for ever.
    """
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            assert until(lambda: _answers(port), 60, process)
            yield port
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def client(port: int) -> Any:
    import boto3

    where = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
    return boto3.client("s3", aws_access_key_id="one", aws_secret_access_key="two", **where)


def environment(port: int) -> dict[str, str]:
    """Return the environment by which clients find the server, with credentials that it accepts."""
    where = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    who = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "two", "AWS_EC2_METADATA_DISABLED": "true"}
    return {**where, **who, "AWS_REGION": "us-east-1"}


def put(port: int, directory: Path, prefix: str, bucket: str = "plant") -> None:
    """Put all files below a directory into a bucket."""
    to = client(port)
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            to.upload_file(str(path), bucket, f"{prefix}/{path.relative_to(directory).as_posix()}")
