"""The keeper of the resident Spark (`pipeline.engine.resident`): a process that owns its Java, and ends it
when nobody has used it for `IDLE_S`."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from bus.machine.parents import ending_with_us
from bus.machine.permissions import write_secret
from pipeline.engine import java
from pipeline.engine.archives import archive, begun, store
from pipeline.engine.jars import unsign
from pipeline.engine.jvm import GIVES_BACK, START_S, Jvm, point_to
from pipeline.engine.server import IDLE_S, LOCK, SERVER, USE, Server, load, took

_LOOK_S: Final = 0.1
_SETTLED_S: Final = 1.0
"""Idle for so long, it rehearses: a command that follows another at once is not held up."""


@contextmanager
def only_one(place: Path) -> Iterator[bool]:
    """Be the only keeper in the block, and on until this process ends: who finds the lock free then knows
    that the process has gone. Yields False once another one serves; one that begins to, or that still ends,
    is waited for."""
    lock = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + START_S
    while not (alone := took(lock, fcntl.LOCK_EX)) and load(place) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    if alone:
        os.truncate(lock, 0)
        os.write(lock, b"%d" % os.getpid())
    else:
        os.close(lock)
    yield alone


def open_context(port: int, secret: str, settings: Mapping[str, str]) -> Any:
    """Make the context in Java, by py4j alone: pyspark would take much memory here. Returns the gateway."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    conf = gateway.jvm.org.apache.spark.SparkConf().setMaster("local[*]").setAppName("buscoupler")
    for name, value in settings.items():
        conf.set(name, value)
    gateway.jvm.org.apache.spark.api.java.JavaSparkContext(conf)
    return gateway


def tidy(gateway: Any, known: int) -> int:
    """Stop and forget what commands have left, while nobody uses the server, and give memory back. Returns
    the number of the newest object; those up to `known` are gone."""
    spark = gateway.jvm.org.apache.spark
    context = spark.SparkContext.getOrCreate()
    context.cancelAllJobs()
    spark.sql.classic.SparkSession.builder().getOrCreate().sharedState().cacheManager().clearCache()
    newest = let_go(gateway, known)
    gateway.jvm.java.lang.System.gc()
    return newest


def let_go(gateway: Any, known: int) -> int:
    """Let Java forget its objects that are newer than `known`. Returns the number of the newest.

    It keeps each object for its client until the client lets go, and one that has ended never does.
    """
    newest = int(gateway.jvm.java.lang.Object()._target_id[1:])  # noqa: SLF001 (py4j numbers them: o1, o2, ...)
    for number in range(known + 1, newest + 1):
        gateway._gateway_client.garbage_collect_object(f"o{number}")  # noqa: SLF001
    return newest


class Attention:
    """The keeper's look at who uses the server: when somebody did last, and what there is to do."""

    def __init__(self, use: BinaryIO, now_s: float) -> None:
        self._use, self._last_s, self._rehearsed = use, now_s, False
        self._busy = True

    def look(self, now_s: float, has_room: bool) -> str:
        """Return "busy", "tidy" (a command has just ended), "rehearse" (once, and only where the machine
        `has_room`), "idle" or "end".

        At "end" the lock is held: a command that comes now waits until we have gone.
        """
        if not took(self._use, fcntl.LOCK_EX):
            self._last_s, self._busy = now_s, True
            return "busy"
        if self._busy:  # with the lock: nobody comes while we tidy up
            self._busy = False
            return "tidy"
        if now_s - self._last_s > IDLE_S:
            return "end"
        if has_room and not self._rehearsed and now_s - self._last_s > _SETTLED_S:
            self._rehearsed = True
            return "rehearse"
        return "idle"

    def let_in(self) -> None:
        fcntl.flock(self._use, fcntl.LOCK_UN)


def has_room() -> bool:
    """Return whether less runs on this machine than it has processors."""
    return os.getloadavg()[0] < len(os.sched_getaffinity(0))


def watch(jvm: Jvm, gateway: Any, use: BinaryIO, told: Path, rehearsal: str) -> None:
    """Look until Java has ended, nobody has used it for long, or the file that tells of it is gone. The
    module `rehearsal` runs small jobs once."""
    attention = Attention(use, time.monotonic())
    rehearsing: subprocess.Popen[bytes] | None = None
    newest = 0
    while jvm.process.poll() is None and told.exists():
        what = attention.look(time.monotonic(), has_room())
        if what == "end":
            return
        if what == "tidy":
            newest = tidy(gateway, newest)
        if what == "rehearse":
            rehearsing = subprocess.Popen(
                [sys.executable, "-P", "-m", rehearsal],
                stdin=subprocess.DEVNULL,
                preexec_fn=ending_with_us(),
            )
        if what == "busy" and rehearsing is not None:
            rehearsing.kill()
            rehearsing.wait()
            rehearsing = None
        attention.let_in()
        time.sleep(_LOOK_S)


def keep(place: Path, key: str, memory: str, rehearsal: str, settings: Mapping[str, str]) -> int:
    """Serve until idle, or SIGTERM. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with only_one(place) as alone, (place / USE).open("ab") as use:
        if not alone:
            return 0
        (place / SERVER).unlink(missing_ok=True)
        with java_of(memory) as jvm:
            port, secret = jvm.address()
            point_to(port, secret)  # for the rehearsal
            gateway = open_context(port, secret, settings)
            told = Server(os.getpid(), port, secret, key)
            write_secret(place / SERVER, json.dumps(told._asdict()))
            try:
                watch(jvm, gateway, use, place / SERVER, rehearsal)
            finally:
                (place / SERVER).unlink(missing_ok=True)
    return 0


@contextmanager
def java_of(memory: str) -> Iterator[Jvm]:
    """Run Java in the block. If there is no class archive yet, it writes one at its end, as `buscoupler warm`
    does, so that the next start is faster."""
    found = java.find()
    target = archive(found)
    partial = begun(target) if not target.exists() and _can_archive() else None
    jvm = Jvm(found, memory, quick=True, record=partial, collector=GIVES_BACK)
    try:
        yield jvm
    finally:
        jvm.close()
        if partial is not None and partial.exists():
            store(partial, target)


def _can_archive() -> bool:
    """Make ready for an archive. False if there is no place for it: Spark starts without."""
    try:
        unsign()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    place, key, memory, rehearsal, settings = sys.argv[1:]
    sys.exit(keep(Path(place), key, memory, rehearsal, json.loads(settings)))
