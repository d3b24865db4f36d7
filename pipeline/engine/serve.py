"""A resident Spark Connect server on loopback, for jobs with `--remote sc://...` (`pipeline.jobs.serve`)."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from pipeline.engine import java
from pipeline.engine.jvm import PARALLEL, START_S, end, last_words, options, started, until
from pipeline.engine.session import ALWAYS, LOCAL, QUIET
from pipeline.errors import PipelineError
from pipeline.output.tables import Progress

_STOP_S: Final = 10.0
SESSION: Final = "c0b50c0b-50c0-4b50-8c0b-50c0b50c0b50"
"""Jobs that come to one session find the code that was generated for those before them."""

_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


def serve(port: int, memory: str, rehearsal: str) -> int:
    """Serve until SIGINT or SIGTERM. Once started, the module `rehearsal` runs small jobs on it.

    Raises `PipelineError` if it does not start.
    """
    tell = Progress(quiet=False)
    for number in (signal.SIGINT, signal.SIGTERM):  # neither may leave Java behind
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt), ExitStack() as at_end:
        name = at_end.enter_context(tempfile.TemporaryDirectory(prefix="buscoupler-serve-"))
        log = Path(name) / "spark.log"
        server = start(port, memory, log)
        at_end.callback(stop, server)
        wait(server, port, log)
        tell(f"give jobs --remote '{url(port)}' (or set SPARK_REMOTE to it); Ctrl-C ends it")
        at_end.callback(at_end.enter_context(warm_up(port, rehearsal)).kill)
        server.wait()
    return 0


def url(port: int) -> str:
    return f"sc://127.0.0.1:{port}/;session_id={SESSION}"


def warm_up(port: int, rehearsal: str) -> "subprocess.Popen[bytes]":
    """Start a process that runs small jobs, so that the server's Java compiles most of what jobs need."""
    words = [sys.executable, "-P", "-m", rehearsal, url(port)]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def command(port: int, memory: str) -> list[str]:
    """Return the command of the server: the same Java and settings as a local session's."""
    found = java.find()
    settings = {
        **LOCAL, **QUIET, **ALWAYS,
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        "spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1",
    }  # fmt: skip
    words = [
        found.program,
        *options(memory),
        *PARALLEL,
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "local[*]",
    ]
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    return [*words, "--class", _CLASS, "spark-internal"]


def start(port: int, memory: str, log: Path) -> "subprocess.Popen[bytes]":
    python = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}  # which has our data source
    return started(command(port, memory), log, python, stdin=subprocess.DEVNULL, cwd=log.parent)


def wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until it listens. Raises `PipelineError` if it ends instead."""
    if not listening(port, START_S, server):
        raise PipelineError(f"the Connect server did not start: {last_words(log)}")


def listening(port: int, limit_s: float, process: "subprocess.Popen[bytes] | None" = None) -> bool:
    """Wait until somebody listens on loopback. False after `limit_s`, or when `process` has ended."""

    def answered() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return until(answered, limit_s, process)


def stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    end(server, _STOP_S)
