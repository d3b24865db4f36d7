"""The Java process behind a local session: started by us, so that it is quick and quiet.

Spark's own launcher starts a shell and a Java before the Java; its output goes to the terminal. We start
the one process with the same options, its noise in a log file, and with an archive of loaded classes
where one was made (`buscoupler warm`).
"""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import unpack
from types import MappingProxyType
from typing import Any, Final

from bus.machine.scratch import Scratch
from pipeline.engine.archives import in_use
from pipeline.engine.jars import class_path
from pipeline.engine.java import MODULE_OPTIONS, Java
from pipeline.engine.python_side import import_pyspark
from pipeline.errors import PipelineError

START_S: Final = 120.0
_LOOK_S: Final = 0.02
PARALLEL: Final = ("-XX:+UseParallelGC",)
# At each full collection. The parallel collector does not enlarge the heap with these: it collects for ever.
GIVES_BACK: Final = ("-XX:+UseG1GC", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=30")
_LOG4J: Final = Path(__file__).parent / "conf" / "log4j2.properties"


class Jvm:
    """A Spark gateway process. `connect()` waits for it and tells pyspark where it is."""

    begins: Final = "starting Spark"
    hint: Final = "to be faster: `buscoupler pipeline serve` keeps Spark running"
    at_once: Final = False  # it ends with us, and its files should
    stays_min: Final = 0

    def __init__(
        self,
        java: Java,
        memory: str,
        quick: bool = False,
        record: Path | None = None,
        managed: bool = False,
        conf: Mapping[str, str] = MappingProxyType({}),
        collector: Sequence[str] = PARALLEL,
    ) -> None:
        """`quick`: compile fast rather than well (for short jobs). `record`: write a class archive at exit.
        `managed`: see `pipeline.engine.jars.needed`. `conf`: settings of the user's. `collector`: of garbage.
        Raises `PipelineError` if there is no Spark."""
        words = command(java, [*options(memory, managed), *collector], quick, record, conf)
        self._directory = Scratch("spark-")
        self._info = Path(self._directory.name) / "gateway"
        self.log = Path(self._directory.name) / "spark.log"
        told = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._info)}
        kept = [self._directory.descriptor]
        self.process = started(
            words, self.log, told, stdin=subprocess.PIPE, pass_fds=kept, preexec_fn=_ignore_interrupts
        )

    def connect(self) -> str:
        """Wait until it listens, and let pyspark find it by the environment. Returns "". Raises
        `PipelineError` with the last line of its log."""
        import_pyspark()
        point_to(*self.address())
        return ""

    def address(self) -> tuple[int, str]:
        """Wait until it listens. Returns its port and secret. Raises `PipelineError`."""
        if not until(lambda: self._info.exists() and self._info.stat().st_size > 0, START_S, self.process):
            raise PipelineError(f"Java did not start: {last_words(self.log)}")
        return _address(self._info.read_bytes())

    def close(self) -> None:
        """Close the input of Java, which ends it. Idempotent."""
        forget_gateway()
        if self.process.stdin:
            self.process.stdin.close()
        end(self.process, START_S)
        self._directory.close()


def hush() -> None:
    """Keep pyspark from writing what it raises to the terminal too, with pages of stacks."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def point_to(port: int, secret: str) -> None:
    """Let pyspark find a Java by the environment."""
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)


def forget_gateway(ends: bool = True) -> None:
    """Reset pyspark: a later session in this process starts anew, and nothing calls the Java that `ends`, or
    goes on for others."""
    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
    os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    if gateway is None:
        return
    gc.collect()  # what is let go of calls Java once more
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if ends:
        gateway.shutdown()
    else:
        gateway.shutdown_callback_server()
        gateway.close()
    for name in ("_gateway", "_jvm"):
        setattr(context, name, None)


def options(memory: str, managed: bool = False) -> list[str]:
    """Make the options of every Java of ours: class path, memory and modules."""
    words = ["-cp", class_path(managed), f"-Xmx{memory}", *MODULE_OPTIONS]
    return [*words, f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", "-Xshare:auto"]


def archived(java: Java) -> list[str]:
    """Make the option of the class archive for a start now; nothing if none has been made."""
    made = in_use(java)
    return [f"-XX:SharedArchiveFile={made}"] if made is not None else []


def command(
    java: Java, options: list[str], quick: bool, record: Path | None, conf: Mapping[str, str]
) -> list[str]:
    """Make the command that starts a gateway."""
    words = [java.program, *options]
    if quick:
        # With the first alone, 48 MB are there for code: a long session fills them, and ends.
        words += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    if record is not None:
        words.append(f"-XX:ArchiveClassesAtExit={record}")
    else:
        words += archived(java)
    given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return [*words, "org.apache.spark.deploy.SparkSubmit", *given, "pyspark-shell"]


def started(
    words: list[str], log: Path, told: Mapping[str, str] | None = None, **how: Any
) -> "subprocess.Popen[bytes]":
    """Start a Java of Spark's by a command. It is `told` more by its environment, and speaks into `log`."""
    # With SPARK_HOME, Python workers import pyspark from an archive there, and compile it at each start.
    others = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    own = {"SPARK_CONNECT_MODE": "0"}
    with log.open("wb") as out:
        return subprocess.Popen(words, stdout=out, stderr=out, env={**others, **own, **(told or {})}, **how)


def until(
    ready: Callable[[], bool], limit_s: float, process: "subprocess.Popen[bytes] | None" = None
) -> bool:
    """Wait until `ready`. Returns False after `limit_s`, or when `process` has ended."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        if ready():
            return True
        time.sleep(_LOOK_S)
    return False


def end(process: "subprocess.Popen[bytes]", limit_s: float) -> None:
    """Wait for the end of a process, and kill it after `limit_s`."""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def same_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: the context's own asks Java first, and fails where Java is being asked."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _address(info: bytes) -> tuple[int, str]:
    port, length = unpack(">ii", info[:8])
    return port, info[8 : 8 + length].decode()


def last_words(log: Path) -> str:
    """Read the last line of a log."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
