"""The Java process behind a local session: started by us, so that it is quick and quiet.

Spark's own launcher starts a shell and a Java before the Java; its output goes to the terminal. We start
the one process with the same options, its noise in a log file, and with an archive of loaded classes
where one was made (`buscoupler warm`).
"""

import gc
import hashlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from struct import unpack
from typing import Final

from pipeline.engine.jars import cache_directory, class_path, needed, spark_home
from pipeline.engine.java import MODULE_OPTIONS, Java
from pipeline.errors import PipelineError

_START_S: Final = 120.0
_LOOK_S: Final = 0.02
_LOG4J: Final = Path(__file__).parent / "conf" / "log4j2.properties"


def archive(java: Java) -> Path:
    """The path of the class archive for this Java and this Spark, whether it has been made or not."""
    text = "\n".join([str(java.home), java.version, *map(str, needed())])
    return cache_directory() / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"


class Jvm:
    """A Spark gateway process. `connect()` waits for it and tells pyspark where it is."""

    def __init__(
        self, java: Java, memory: str, quick: bool = False, record: Path | None = None, managed: bool = False
    ) -> None:
        """`quick`: compile fast rather than well (for short jobs). `record`: write a class archive at exit.
        `managed`: see `pipeline.engine.jars.needed`. Raises `PipelineError` if there is no Spark."""
        words = command(java, options(memory, managed), quick, record)
        self._directory = tempfile.TemporaryDirectory(prefix="buscoupler-spark-")
        self._info = Path(self._directory.name) / "gateway"
        self.log = Path(self._directory.name) / "spark.log"
        environment = dict(os.environ, _PYSPARK_DRIVER_CONN_INFO_PATH=str(self._info), SPARK_CONNECT_MODE="0")
        environment["SPARK_HOME"] = str(spark_home())
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE, stdout=out, stderr=out, env=environment,
                preexec_fn=_ignore_interrupts,
            )  # fmt: skip

    def connect(self) -> str:
        """Wait until it listens, and let pyspark find it by the environment. Returns "". Raises
        `PipelineError` with the last line of its log."""
        deadline = time.monotonic() + _START_S
        while not (self._info.exists() and self._info.stat().st_size):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise PipelineError(f"Java did not start: {last_words(self.log)}")
            time.sleep(_LOOK_S)
        port, secret = _address(self._info.read_bytes())
        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        return ""

    def close(self) -> None:
        """Close its input, which ends it. Idempotent."""
        _forget_gateway()
        os.environ.pop("PYSPARK_GATEWAY_PORT", None)
        os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(_START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._directory.cleanup()


def _forget_gateway() -> None:
    """Reset pyspark: a later session in this process starts anew, and nothing calls the Java that is gone."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    if gateway is None:
        return
    gc.collect()  # what is let go of calls Java once more
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    gateway.shutdown()
    for name in ("_gateway", "_jvm"):
        setattr(context, name, None)


def options(memory: str, managed: bool = False) -> list[str]:
    """Make the options of every Java of ours: class path, memory and modules."""
    words = ["-cp", class_path(managed), f"-Xmx{memory}", *MODULE_OPTIONS]
    return [*words, f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", "-XX:+UseParallelGC", "-Xshare:auto"]


def command(java: Java, options: list[str], quick: bool, record: Path | None) -> list[str]:
    """Make the command that starts a gateway."""
    words = [java.program, *options]
    if quick:
        words.append("-XX:TieredStopAtLevel=1")
    if record is not None:
        words.append(f"-XX:ArchiveClassesAtExit={record}")
    elif (made := archive(java)).exists():
        words.append(f"-XX:SharedArchiveFile={made}")
    return [*words, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _address(info: bytes) -> tuple[int, str]:
    port, length = unpack(">ii", info[:8])
    return port, info[8 : 8 + length].decode()


def last_words(log: Path) -> str:
    """Read the last line of a log."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
