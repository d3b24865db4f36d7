"""`buscoupler pipeline serve`: a resident Spark Connect server on loopback, for jobs with `--remote sc://...`."""

import argparse
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from pipeline import java
from pipeline.errors import PipelineError
from pipeline.jvm import options, spark_home
from pipeline.session import ALWAYS, LOCAL
from pipeline.tables import Progress

_START_S: Final = 120.0
_LOOK_S: Final = 0.05
_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


def run(options: argparse.Namespace) -> int:
    """Until interrupted. Raises `PipelineError` if it does not start."""
    tell = Progress(quiet=False)
    with tempfile.TemporaryDirectory(prefix="buscoupler-serve-") as name:
        server = start(options.port, options.memory, Path(name) / "spark.log")
        try:
            wait(server, options.port, Path(name) / "spark.log")
            tell(f"give jobs --remote sc://127.0.0.1:{options.port}; Ctrl-C ends it")
            server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            stop(server)
    return 0


def command(port: int, memory: str) -> list[str]:
    """The words that start the server: the same Java and settings that a local session has."""
    found = java.find()
    settings = {
        **LOCAL, **ALWAYS,
        "spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1",
    }  # fmt: skip
    words = [found.program, *options(memory), "org.apache.spark.deploy.SparkSubmit", "--master", "local[*]"]
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    return [*words, "--class", _CLASS, "spark-internal"]


def start(port: int, memory: str, log: Path) -> "subprocess.Popen[bytes]":
    environment = dict(os.environ, SPARK_HOME=str(spark_home()), SPARK_CONNECT_MODE="0")
    with log.open("wb") as out:
        return subprocess.Popen(
            command(port, memory),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            cwd=log.parent,
        )


def wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until it listens. Raises `PipelineError` if it ends instead."""
    if not listening(port, _START_S, server):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise PipelineError(f"the Connect server did not start: {lines[-1] if lines else 'it said nothing'}")


def listening(port: int, limit_s: float, process: "subprocess.Popen[bytes] | None" = None) -> bool:
    """Whether somebody came to listen on loopback in time; not so once `process` has ended."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(_LOOK_S)
    return False


def stop(server: "subprocess.Popen[bytes]") -> None:
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
