"""The files by which commands find a Spark of their user: of the one that is resident
(`pipeline.engine.resident`) its locks, and how to reach it; of Connect servers their tokens."""

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from pipeline.engine.jars import cache_directory
from pipeline.errors import PipelineError

LOCK: Final = "keeper.lock"  # the keeper holds it as long as it lives, and its number is in it
USE: Final = "use.lock"  # shared by those who use it
SERVER: Final = "server.json"  # 0600: how to reach it
LOG: Final = "log"
IDLE_S: Final = 180.0
"""A resident Spark ends when nobody has used it for so long: it has a gigabyte of memory or more."""
STOP_S: Final = 150.0  # the keeper kills its Java after 120, which may be writing a class archive
_LOOK_S: Final = 0.02
TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable by which Spark's Connect servers and clients know the token."""


class Server(NamedTuple):
    """A resident Spark: its keeper's process, where Java listens, the secret, and `key`: what it was started
    with."""

    pid: int
    port: int
    secret: str
    key: str


def directory() -> Path:
    """Return the directory of the locks: below $XDG_RUNTIME_DIR, or where the class archive is."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "buscoupler" / "spark" if runtime else cache_directory() / "spark"


def token_file(port: int) -> Path:
    """Return the file with the token of this user's Connect server at a port of loopback."""
    return directory() / f"connect-{port}.token"


def token_of(port: int) -> str:
    """Return the token of this user's Connect server at a port; "" if none of ours is there."""
    with suppress(OSError):
        return token_file(port).read_text()
    return ""


def load(place: Path) -> Server | None:
    """Return the resident Spark that runs, by the files in a directory; None if none does."""
    with suppress(OSError, ValueError, TypeError):
        if is_held(place / LOCK):
            found = Server(**json.loads((place / SERVER).read_text()))
            os.kill(found.pid, 0)  # a keeper that was killed leaves its file to the next one
            return found
    return None


def is_held(path: Path) -> bool:
    """Return whether a process holds a lock. Raises `OSError` if there is no such file."""
    with path.open("rb") as file:
        return not took(file, fcntl.LOCK_SH)


def took(file: BinaryIO | int, how: int) -> bool:
    """Take a lock on a file, `fcntl.LOCK_SH` or `LOCK_EX`, if nobody has one against it."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keeper_of(place: Path) -> int | None:
    """Return the process that keeps a Spark, starts one or still ends one, by the lock that it holds as long
    as it lives; None if none does. 0: it has only just taken the lock."""
    try:
        return int((place / LOCK).read_text() or 0) if is_held(place / LOCK) else None
    except OSError:
        return None


def stop(place: Path) -> bool:
    """End the server, and wait until its process has ended. False if there is none. Raises `PipelineError` if
    it goes on for `STOP_S`.

    One that starts or has begun to end is told and waited for, too: it has no file by which commands find it.
    """
    was_there, until_s = False, time.monotonic() + STOP_S
    while (pid := keeper_of(place)) is not None:
        was_there = True
        with suppress(ProcessLookupError):
            if pid:
                _end(place, pid, until_s)
        if time.monotonic() > until_s:
            raise PipelineError(f"process {pid} (Spark) was told to end {STOP_S:g} s ago: kill it")
        time.sleep(_LOOK_S)
    return was_there


def _end(place: Path, pid: int, until_s: float) -> None:
    """Tell a keeper to end, and wait for that. Raises `ProcessLookupError` if it has ended."""
    with _process(pid) as process:
        if keeper_of(place) == pid:  # else the number may be another process's by now
            signal.pidfd_send_signal(process, signal.SIGTERM)
            select.select([process], [], [], max(0.0, until_s - time.monotonic()))


@contextmanager
def _process(pid: int) -> Iterator[int]:
    """Yield a descriptor of a process, readable once that has ended. Raises `ProcessLookupError`."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
