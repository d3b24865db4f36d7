"""A resident Spark Connect server on loopback, for jobs with `--remote sc://...` (`pipeline.jobs.serve`).

Who can use it can run any program as its user. So it takes only clients with its token, which is in a file
that only this user can read (`pipeline.engine.server`).
"""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from bus.machine.addresses import dialled
from bus.machine.parents import ending_with_us
from bus.machine.permissions import make_private, write_secret
from bus.machine.scratch import Scratch
from pipeline.engine import choice, java
from pipeline.engine.jvm import PARALLEL, START_S, archived, end, last_words, options, started, until
from pipeline.engine.server import TOKEN, directory, token_file
from pipeline.engine.session import ALWAYS, QUIET, for_local
from pipeline.errors import PipelineError
from pipeline.output.tables import Progress

_STOP_S: Final = 10.0
_ANSWER_S: Final = 5.0
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
        name = at_end.enter_context(Scratch("serve-"))
        log = Path(name) / "spark.log"
        server = at_end.enter_context(running(port, memory, log))
        tell(f"give jobs --remote '{url(port)}' (or set SPARK_REMOTE to it); Ctrl-C ends it")
        tell(f"other programs of yours also need {TOKEN}=$(cat {token_file(port)})")
        if why := cold(port):
            tell(why)
        else:
            with _no_interrupts():  # one within the start would leave a process behind that nobody knows
                at_end.callback(at_end.enter_context(warm_up(port, rehearsal)).kill)
        server.wait()
    return 0


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def url(port: int) -> str:
    """Return the Spark Connect URL of a server of ours at a port."""
    return f"sc://localhost:{port}/;session_id={SESSION}"


def cold(port: int) -> str:
    """Return why nothing here can warm a server up, and what follows; "" if something can."""
    try:
        choice.check(choice.Where(remote=url(port)), "warming up", on_workers=False)
    except PipelineError as error:
        return f"its first jobs will be slow: {error}"
    return ""


def warm_up(port: int, rehearsal: str) -> "subprocess.Popen[bytes]":
    """Start a process that runs small jobs, so that the server's Java compiles most of what jobs need."""
    words = [sys.executable, "-P", "-m", rehearsal, url(port)]
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=ending_with_us()
    )


def command(port: int, memory: str) -> list[str]:
    """Return the command of the server: the same Java and settings as a local session's."""
    found = java.find()
    settings = {
        **for_local(), **QUIET, **ALWAYS,
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        "spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1",
    }  # fmt: skip
    words = [
        found.program,
        *options(memory),
        *PARALLEL,
        *archived(found),
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "local[*]",
    ]
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    return [*words, "--class", _CLASS, "spark-internal"]


@contextmanager
def running(port: int, memory: str, log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a server in the block, from when it listens. Raises `PipelineError` if it ends instead."""
    token = secrets.token_urlsafe(32)
    how = {"stdin": subprocess.DEVNULL, "cwd": log.parent, "preexec_fn": ending_with_us()}
    server = started(command(port, memory), log, told(token), **how)
    try:
        if not listening(port, START_S, server):
            raise PipelineError(f"the Connect server did not start: {last_words(log)}")
        make_private(directory())
        write_secret(token_file(port), token)
        yield server
    finally:
        token_file(port).unlink(missing_ok=True)
        stop(server)


def told(token: str) -> dict[str, str]:
    """Return the environment of the server: its words anyone can read, but not this."""
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)  # which has our data source
    return {"PYSPARK_PYTHON": python, TOKEN: token}


def listening(port: int, limit_s: float, process: "subprocess.Popen[bytes] | None" = None) -> bool:
    """Wait until somebody listens on loopback. False after `limit_s`, or when `process` has ended."""

    def answered() -> bool:
        try:
            dialled("127.0.0.1", port, _ANSWER_S).close()
        except OSError:
            return False
        return True

    return until(answered, limit_s, process)


def stop(server: "subprocess.Popen[bytes]") -> None:
    """End a server, by force if it does not end by itself."""
    server.terminate()
    end(server, _STOP_S)
