"""The Spark session, made in one place: on this machine by default, on a cluster or a Connect server on
request. On this machine that is Spark, or Sail if it is installed (`choose`).

Only `spark.sql.*` is set once a session runs, and no job touches the context, the JVM or an RDD: so each of
`python`, `--master spark://...`, `spark-submit` and `--remote sc://host:port` runs the same lines.
"""

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from bus.extras import lacking
from pipeline import cache
from pipeline.engine import jars, java, sail
from pipeline.engine.jvm import Jvm
from pipeline.engine.sail import Sail
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAIL: Final = "sail"
"""For --remote: a Sail of our own, for one command."""

CONNECT_PORT: Final = 15002  # where a URL names none
_REACH_S: Final = 5.0
_MANAGED: Final = ("yarn", "k8s:")
_SESSION_ID: Final = ";session_id="

ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "8",
    # What is cached stays divided as it is; what is divided by some of a join's keys is divided well enough.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
SMALL: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "16",
}
"""For captures of some hundred megabytes: planning again at each stage, and large tables for each task, cost
more than they bring."""
LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.codegen.cache.maxEntries": "2000",  # an audit alone has more than the default, 100
    # A part for each core: with few parts, one more than cores takes half as long again.
    "spark.sql.files.maxPartitionBytes": "256m",
    "spark.sql.files.openCostInBytes": "512k",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "20",  # most frames of a part, instead of 65,536
}
ASKED: Final = {
    "spark.sql.session.localRelationCacheThreshold": "1048576",
    "spark.sql.session.localRelationSizeLimit": "3221225472",
    "spark.sql.session.localRelationChunkSizeRows": "10000",
    "spark.sql.session.localRelationChunkSizeBytes": "16777216",
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": "1073741824",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "false",
    "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled": "false",
}
"""Spark's defaults that its 4.3 client asks a Connect server for, which Sail does not know."""


class Local(Protocol):
    """A process of ours that runs a session on this machine."""

    def connect(self) -> str:
        """Wait until it listens. Returns its URL; "" if pyspark finds it by the environment."""

    def close(self) -> None: ...


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where Spark runs."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--master", metavar="URL", help="a cluster's master; local[*] is Spark on this machine"
    )
    where.add_argument(
        "--remote",
        metavar="URL",
        help="a Spark Connect server: sc://HOST:PORT; sail: one for this command, without Java",
    )


def choose(options: argparse.Namespace, able: bool, here: bool) -> bool:
    """Decide whether to take Sail, and note it in `options`.

    It is taken if it is asked for; or if it is installed, the job `able` to run there, the capture `here` on
    this machine, and nothing else asked for. Raises `PipelineError` if it is asked for and the job is not
    able to, or if the engine that is left is not installed.
    """
    asked = _remote(options)
    if asked == SAIL and not able:
        raise PipelineError(f"{options.job} does not run on Sail: it takes Spark")
    free = not (asked or options.master or _submitted())
    if asked == SAIL or (able and here and free and sail.installed()):
        options.remote = SAIL
    elif (free or options.master) and not jars.installed():
        raise PipelineError(_lacking(options.job, able and free))
    return str(options.remote) == SAIL


def _lacking(job: str, able: bool) -> str:
    if able:
        return lacking(job, "an engine that reads captures", SAIL)
    return lacking(job, "Spark", "pipeline")


def start(options: argparse.Namespace, quick: bool = False) -> Local | None:
    """Start Java or Sail while the rest is prepared. None if another process has the engine."""
    if _remote(options) == SAIL:
        return Sail(options.memory)
    if _submitted() or _remote(options):
        return None
    managed = (options.master or "").startswith(_MANAGED)
    return Jvm(java.find(), options.memory, quick, managed=managed)


def _submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which started us


def _remote(options: argparse.Namespace) -> str:
    """Return the Connect server that options or the environment ask for; "" if none."""
    return options.remote or ("" if options.master else os.environ.get("SPARK_REMOTE", ""))


@contextmanager
def session(options: argparse.Namespace, local: Local | None = None) -> Iterator["SparkSession"]:
    """Open a session by `options` (see `arguments`). At the end stop it, and `local` (from `start`) with
    it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take python3 from the PATH
    try:
        spark = _made(options, local)
    except BaseException:
        if isinstance(local, Jvm):
            local.close()  # Sail ends with us: at exit the client would look for one that is gone for minutes
        raise
    try:
        yield spark
        if local is None:
            _release(spark, _remote(options))
    finally:
        try:
            spark.stop()
        finally:
            if local is not None:
                local.close()


def _made(options: argparse.Namespace, local: Local | None) -> "SparkSession":
    if local is None:
        remote = _remote(options)
        reach(remote)
    else:
        remote = local.connect()
    try:
        spark = make(options.master, remote)
    except Exception as error:  # py4j's and grpc's, which say where in Java, over pages
        where = remote or options.master or "this machine"
        raise PipelineError(f"no Spark session on {where}: {_fault(error)}") from error
    if isinstance(local, Sail):
        cache.write_down(spark)
        spark.client.set_retry_policies([])  # else it would look for minutes for one that has been killed
    return spark


def _fault(error: Exception) -> str:
    if "SESSION_CLOSED" in str(error):
        return f"another client has closed it for good; leave {_SESSION_ID}... out, or start the server again"
    return type(error).__name__


def _release(spark: Any, remote: str) -> None:
    """Leave nothing on the server but a session that the URL names: that one goes on."""
    cache.release()
    spark.release_session_on_close = _SESSION_ID not in remote


def make(master: str | None, remote: str | None) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("buscoupler")
    if remote:
        builder = builder.remote(remote)
    elif "PYSPARK_GATEWAY_PORT" in os.environ and not os.environ.get("SPARK_ENV_LOADED"):
        builder = builder.master(master or "local[*]").config(map=dict(LOCAL))
    elif master:
        builder = builder.master(master)
    with _same_interrupts():
        return builder.config(map=dict(ALWAYS | ASKED if remote else ALWAYS)).getOrCreate()


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: the context's own asks Java first, and fails where Java is being asked."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def reach(remote: str) -> None:
    """Check that somebody listens there: the client itself goes on asking for minutes, in silence.

    Raises `PipelineError`. An address other than sc:// is left to the client, which knows others.
    """
    address = urlsplit(remote)
    if address.scheme != "sc" or not address.hostname:
        return
    host, port = address.hostname, address.port or CONNECT_PORT
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except OSError as error:
        raise PipelineError(f"{remote}: {(error.strerror or str(error)).lower()}") from None
