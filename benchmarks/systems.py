"""The compared systems: how to start each on a port, and how to stop it."""

import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import foreign
from tests.helpers.ports import free_port

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "bench"
COMMAND = Path(sys.executable).with_name("buscoupler")
START_S = 15.0
LIBRARIES = {"secure_load": ("-lssl", "-lcrypto")}
STOP_S = 3.0


class System(NamedTuple):
    """One device: `command(port)` starts it; `missing()` returns why it cannot be started, or "".

    `path` has a %d where it listens on a file of that name, and not on the port.
    """

    name: str
    label: str
    protocol: str
    command: Callable[[int], list[str]]
    missing: Callable[[], str]
    path: str = ""


class Running(NamedTuple):
    """A device that accepts connections on a port of 127.0.0.1, or on a file."""

    pid: int
    port: int
    path: str = ""

    @property
    def where(self) -> int | str:
        """The port, or the name of the file."""
        return self.path or self.port


class BenchError(Exception):
    """A system or the load generator failed; the text says which and why."""


def build(name: str) -> Path:
    """Compile `name`.c into the cache if it or a header is newer than the program there; return its path.

    `name` may have a directory.

    Raises `BenchError` with the compiler's error output.
    """
    source, program = HERE / f"{name}.c", CACHE / name.replace("/", "-")
    changed = max(path.stat().st_mtime for path in (source, HERE / "load.c", *HERE.glob("*.h")))
    if program.exists() and program.stat().st_mtime >= changed:
        return program
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = program.with_name(f"{program.name}.{os.getpid()}")
    flags = ["-O2", "-Wall", "-Wextra", f"-I{HERE}"]
    command = ["cc", *flags, "-o", str(fresh), str(source), *LIBRARIES.get(name, ())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}:\n{done.stderr}")
    return fresh.replace(program)


def _ours(port: int) -> list[str]:
    return [str(COMMAND), "device", f"tcp://127.0.0.1:{port}"]


def _foreign(kind: str) -> Callable[[int], list[str]]:
    return lambda port: [sys.executable, str(HERE / "foreign.py"), kind, str(port)]


def _unless(present: Callable[[], object], what: object) -> Callable[[], str]:
    return lambda: "" if present() else f"{what} is missing"


def missing_module(name: str) -> Callable[[], str]:
    """Return the look whether a Python package is missing."""
    return _unless(lambda: find_spec(name), name)


SYSTEMS = (
    System("ours", "buscoupler device", "sp", _ours, _unless(COMMAND.exists, COMMAND)),
    System("nng", "nng_device", "sp", _foreign("nng"), missing_module("pynng")),
    System("nng-one", "nng_device, one core", "sp", _foreign("nng-one"), missing_module("pynng")),
    System("nanomsg", "nn_device", "sp", _foreign("nanomsg"), _unless(foreign.nn_library, "libnanomsg")),
    System(
        "nats",
        "nats-server",
        "nats",
        lambda port: ["nats-server", "-a", "127.0.0.1", "-p", str(port)],
        _unless(lambda: shutil.which("nats-server"), "nats-server"),
    ),
    System(
        "relay",
        "byte relay (limit)",
        "sp",
        lambda port: [str(build("relay")), str(port)],
        _unless(lambda: shutil.which("cc"), "a C compiler"),
    ),
)


def raise_file_limit(count: int) -> None:
    """Let this process and its children open `count` files. Raises `BenchError` if that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (OSError, ValueError) as error:
        raise BenchError(f"{count} open files are needed, the limit is {hard}: raise ulimit -n") from error


def _accepts(where: int | str) -> bool:
    address: Any = where if isinstance(where, str) else ("127.0.0.1", where)
    with socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET) as probe:
        return probe.connect_ex(address) == 0


def _wait(process: subprocess.Popen[bytes], where: int | str, log: Path) -> None:
    end = time.monotonic() + START_S
    while not _accepts(where):
        if process.poll() is not None or time.monotonic() > end:
            raise BenchError(f"{process.args!r} accepts no connection on {where}: {log.read_text()[-600:]}")
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started: with SIGTERM, then with SIGKILL."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def started(system: System) -> Iterator[Running]:
    """Start a process of `system`, and stop it afterwards. Its output goes to build/bench/NAME.log."""
    port, log = free_port(), CACHE / f"{system.name}.log"
    CACHE.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as words:
        process = subprocess.Popen(system.command(port), stdout=words, stderr=subprocess.STDOUT)
    try:
        running = Running(process.pid, port, system.path % port if system.path else "")
        _wait(process, running.where, log)
        yield running
        if process.poll() is not None:
            raise BenchError(f"{system.label} ended by itself: {log.read_text()[-600:]}")
    finally:
        stop(process)
