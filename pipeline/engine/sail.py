"""Sail for one command: a Connect server without Java that starts at once, in a process of its own.

It runs in a process without pyspark: no job of ours has Python functions, and Sail 0.7 opens no session
beside a pyspark of 4.3.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bus.extras import lacking
from bus.machine.scratch import Scratch
from pipeline.engine import jars
from pipeline.engine.jvm import last_words
from pipeline.engine.python_side import import_client
from pipeline.errors import PipelineError

_START_S: Final = 60.0
_END_S: Final = 1.0
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def installed() -> bool:
    """Return whether Sail and a client for it are installed."""
    return all(find_spec(name) is not None for name in ("pysail", "pyspark", "grpc", "pandas"))


def check() -> None:
    """Raise `PipelineError` if Sail is not installed."""
    if not installed():
        raise PipelineError(lacking("Sail", "pysail", "engines" if jars.installed() else "sail"))


class Sail:
    """A server on loopback. `connect()` waits for it and gives its URL."""

    begins: Final = "starting Sail"
    hint: Final = ""
    at_once: Final = True
    stays_min: Final = 0

    def __init__(self, memory: str, store: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start the server. `memory` is given as to Java, for example 4g; `store` are variables of its
        environment. Raises `PipelineError` if it is no
        size, or if Sail is not installed."""
        check()
        most = size_bytes(memory)
        self._directory = Scratch("sail-")
        self._log = Path(self._directory.name) / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipeline.engine.sail", self._directory.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**environment(most, self._directory.name), **store},
                start_new_session=True,  # Ctrl-C is ours
                pass_fds=[self._directory.descriptor],
            )  # fmt: skip

    def connect(self) -> str:
        """Import its client while it starts, and return its URL. Raises `PipelineError` with the last line of
        its log."""
        import_client()
        out = self.process.stdout
        assert out is not None
        word = out.readline() if select.select([out], [], [], _START_S)[0] else b""
        if not word.strip().isdigit():
            raise PipelineError(f"Sail did not start: {last_words(self._log)}")
        return f"sc://127.0.0.1:{int(word)}"

    def has_ended(self) -> bool:
        """Return whether the process has ended. A killed one ends a moment after its connections broke."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)
        return self.process.returncode is not None

    def close(self) -> None:
        """End it; it holds nothing that is needed. Idempotent."""
        self.process.kill()
        self.process.communicate()
        self._directory.close()


def environment(memory_bytes: int, directory: str) -> dict[str, str]:
    """Make the server's environment: memory for queries before they spill or fail, a directory for files,
    errors only."""
    settings = {
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy",
        "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(memory_bytes),
        "SAIL_EXECUTION__CHECKPOINT__PATH": Path(directory).as_uri(),
    }
    return {**os.environ, **settings, "TMPDIR": directory, "RUST_LOG": "error"}


def size_bytes(memory: str) -> int:
    """Parse a size in Java's notation: 512m, 4g. Raises `PipelineError`."""
    found = re.fullmatch(r"([0-9]+)([kmgt]?)", memory.lower())
    if not found:
        raise PipelineError(f"--memory {memory}: give a size such as 512m or 4g")
    return int(found[1]) << _UNITS[found[2]]


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end this process, and Sail with it: after a KeyboardInterrupt the threads of the
    client may wait for ever for one another."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve(directory: str) -> None:
    """Print the port on standard output. When standard input closes, remove `directory` and exit, so that we
    end with our parent."""
    sys.modules["pyspark"] = None  # type: ignore[assignment]
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    print(server.listening_address[1], flush=True)
    sys.stdin.read()
    shutil.rmtree(directory, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)  # its own end waits for sessions


if __name__ == "__main__":
    serve(sys.argv[1])
