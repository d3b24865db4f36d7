"""The Spark session, made in one place: on this machine by default, on a cluster or a Connect server on
request (`pipeline.engine.choice`).

Only `spark.sql.*` is set once a session runs, and no job touches the context, the JVM or an RDD: so each of
`python`, `--master spark://...`, `spark-submit` and `--remote sc://host:port` runs the same lines.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from bus.machine import permissions
from bus.urls import is_loopback
from pipeline import cache, reach
from pipeline.engine import java, resident, server
from pipeline.engine.choice import Where
from pipeline.engine.jvm import GIVES_BACK, PARALLEL, Jvm, hush, same_interrupts
from pipeline.engine.python_side import import_client
from pipeline.engine.resident import Resident
from pipeline.engine.sail import Sail
from pipeline.errors import PipelineError, cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_ID: Final = ";session_id="
_STOPPED: Final = re.compile("context stopped|stopped SparkContext|masters are unresponsive")
"""Spark's words when it has given up a master, which it does after a minute."""
TRIES: Final = 6
ANSWER_S: Final = 10.0
_BACKOFF_MS: Final = 10_000
"""The longest wait between two tries to reach a Connect server. The first is of 50 ms, each is four times as
long as the one before: all are over within half a minute."""

ALWAYS: Final = {"spark.sql.session.timeZone": "UTC"}
SMALL: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "16",
}
"""Settings for captures of some hundred megabytes: planning again at each stage, and large tables for each
task, cost more than they bring."""
LOCAL: Final = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "8",
    # What is cached stays divided as it is; what is divided by some of a join's keys is divided well enough.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else half of all calls of Java say where we are
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",  # other users reach loopback too: Spark makes a secret for itself
    "spark.sql.codegen.cache.maxEntries": "2000",  # an audit alone has more than the default, 100
    # Of past queries, for pages that nobody sees: plans of audits would fill the memory of a long session.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    # A part for each core: with few parts, one more than cores takes half as long again.
    "spark.sql.files.maxPartitionBytes": "256m",
    "spark.sql.files.openCostInBytes": "512k",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "20",  # most frames of a part, instead of 65,536
}
"""Settings for Spark on this machine. A cluster has its own, or its user's."""
UMASK: Final = "spark.hadoop.fs.permissions.umask-mode"
"""Hadoop sets the permissions of its files itself."""
SOUND: Final = {"spark.hadoop.parquet.page.verify-checksum.enabled": "true"}
"""Settings for a Java of ours, wherever it works: a damaged page is an error. Recorders write the checksums.
"""
SHARED: Final = {"spark.sql.artifact.isolation.enabled": "false"}
"""Settings for a Spark that many commands come to, each with a session of its own. That would have a class
loader of its own too, by which generated code is known: each command would generate and compile it all again.
"""
LASTING: Final = {
    # A stream has some dozen plans. But each batch of alerts has code of its own, with its watermark in it.
    "spark.sql.codegen.cache.maxEntries": "200",
    # What a read has listed is kept, up to 250 MB, for a next read by the same DataFrame: here there is none.
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
}
"""Settings for a session that goes on for months, on this machine."""
QUIET: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""Settings for a Java of ours, wherever it works: it has no jars for the pages of the UI."""
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
    """A process of ours that runs a session on this machine. It tells what it `begins` with, and gives a
    `hint` how the next command can be faster; "" if it has none. `at_once`: Ctrl-C may end us at once.
    `stays_min`: it stays for so many minutes after the last command that uses it."""

    @property
    def begins(self) -> str: ...

    @property
    def hint(self) -> str: ...

    @property
    def at_once(self) -> bool: ...

    @property
    def stays_min(self) -> int: ...

    def connect(self) -> str:
        """Wait until it listens. Returns its URL; "" if pyspark finds it by the environment."""

    def close(self) -> None: ...


def start(where: Where, quick: bool = False, rehearsal: str = "", lasting: bool = False) -> Local | None:
    """Start Java or Sail while the rest is prepared, or find the Spark that is resident, which runs the
    module `rehearsal` once. None if another process has the engine. `lasting`: it goes on for long, and gives
    memory back."""
    if where.on_sail:
        return Sail(where.memory, where.store)
    if where.submitted or where.remote:
        return None
    reach.check(where.master)
    if where.resident:
        shared = {**settings(where, ours=True), **SHARED}
        if found := resident.enter(where.memory, shared, rehearsal):
            return found
    collector = GIVES_BACK if lasting else PARALLEL
    return Jvm(java.find(), where.memory, quick, managed=where.managed, conf=where.conf, collector=collector)


@contextmanager
def session(where: Where, local: Local | None = None) -> Iterator["SparkSession"]:
    """Open a session. At the end stop it, and `local` (from `start`) with it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take python3 from the PATH
    if isinstance(local, Resident):
        with local.attached() as spark:
            yield spark
        return
    try:
        spark = _made(where, local)
    except BaseException:
        if isinstance(local, Jvm):
            local.close()  # Sail ends with us: at exit the client would look for one that is gone for minutes
        raise
    try:
        yield spark
    finally:
        if where.remote:
            try_again(spark, 0)  # a server forgets a session by itself
        if local is None:
            _release(spark, where.remote)  # also after an error, or it would end a session that others use
        try:
            spark.stop()
        finally:
            if local is not None:
                local.close()


def _made(where: Where, local: Local | None) -> "SparkSession":
    if local is None:
        reach.check(where.remote)
        if where.remote:
            check_answers(where.remote)
    else:
        where = where._replace(remote=local.connect())
    try:
        spark = make(where, settings(where, ours=local is not None))
    except Exception as error:  # py4j's and grpc's, which say where in Java, over pages
        place = where.remote or where.master or "this machine"
        raise PipelineError(f"no Spark session on {place}: {_fault(error)}") from error
    if isinstance(local, Sail):
        cache.write_down(spark)
    if where.remote:
        try_again(spark, 0 if isinstance(local, Sail) else TRIES)
    return spark


def check_answers(remote: str) -> None:
    """Raise `PipelineError` if what listens at a Connect server's URL does not speak as one: the client would
    try for ten minutes."""
    import_client()
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(with_token(remote)).toChannel()
    try:
        grpc.channel_ready_future(channel).result(ANSWER_S)
    except grpc.FutureTimeoutError:
        raise PipelineError(f"{remote}: it accepts, but does not answer within {ANSWER_S:.0f} s") from None
    finally:
        channel.close()


def try_again(spark: Any, tries: int) -> None:
    """Let a client try so many times to reach its server again: by itself it tries for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=tries, max_backoff=_BACKOFF_MS)
    spark.client.set_retry_policies([policy] if tries else [])
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # a line of ours follows


def settings(where: Where, ours: bool) -> dict[str, str]:
    """Return the settings of a session; `ours`: of a Java that we started. What the user gives wins."""
    found = dict(ALWAYS)
    if where.remote:
        found |= ASKED
    elif ours:
        found |= QUIET | SOUND | (for_local() if where.here else {})
    return found | dict(where.conf)


def for_local() -> dict[str, str]:
    """Return `LOCAL`, and what goes for the files that Spark writes as this process."""
    return {**LOCAL, UMASK: f"{permissions.umask() | permissions.DENIED:03o}"}


def _fault(error: Exception) -> str:
    if "SESSION_CLOSED" in str(error):
        return f"another client has closed it for good; leave {_SESSION_ID}... out, or start the server again"
    if _STOPPED.search(str(error)):
        return "its master does not take us: it says nothing, or has refused"
    return cause_of(str(error))


def _release(spark: Any, remote: str) -> None:
    """Leave nothing on the server but a session that the URL names: that one goes on."""
    spark.release_session_on_close = _SESSION_ID not in remote
    with suppress(Exception):  # the server may be what has gone
        cache.release()


def make(where: Where, settings: Mapping[str, str]) -> "SparkSession":
    """Make the session of a place with these settings of Spark."""
    if where.remote:
        import_client()
    from pyspark.sql import SparkSession

    hush()
    builder = SparkSession.builder.appName("buscoupler")
    if where.remote:
        builder = builder.remote(with_token(where.remote))
    elif where.master or not where.submitted:
        builder = builder.master(where.master or "local[*]")
    with same_interrupts():
        made = builder.config(map=dict(settings)).getOrCreate()
    if not where.remote:
        from pipeline.engine.lookups import remember

        remember()
    return made


def with_token(remote: str) -> str:
    """Return a URL with the token of this user's own Connect server on this machine, if it leads there.

    Without encryption a client gives a token to `localhost` only.
    """
    address = urlsplit(remote)
    ours = address.scheme == "sc" and is_loopback(address.hostname or "")
    if not ours or ";token=" in address.path or server.TOKEN in os.environ:
        return remote
    port = address.port or reach.CONNECT_PORT
    token = server.token_of(port)
    return f"sc://localhost:{port}{address.path or '/'};token={token}" if token else remote
