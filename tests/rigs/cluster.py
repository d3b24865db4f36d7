"""A cluster of Spark on loopback: a master and workers with a core and 1 GB each, as processes of ours."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pipeline.engine import java, serve
from pipeline.engine.jars import class_path, spark_home
from pipeline.engine.jvm import archived, end, options, until
from tests.helpers import ROOT, alone
from tests.helpers.ports import free_port

LOOPBACK: Final = "127.0.0.1"
SERIAL: Final = "-XX:+UseSerialGC"
FEW: Final = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.sql.adaptive.enabled=false")
"""Words of a command that works on little."""
_PLACE: Final = "org.apache.spark.deploy"
_SHUFFLED: Final = "spark-*/executor-*/blockmgr-*/*/shuffle_*.data"
_START_S, _WORK_S, _END_S = 60.0, 600.0, 20.0


def with_archive() -> tuple[str, str]:
    """Return a class path and options for a Java that Spark itself starts: with our jars before its own, it
    takes their classes from the archive as ours do."""
    return class_path(), " ".join([SERIAL, *archived(java.find())])


class Cluster:
    """A cluster in a directory. `url` is that of its master."""

    def __init__(self, directory: Path, workers: int) -> None:
        self._directory, self._workers = directory, dict[str, subprocess.Popen[bytes]]()
        self._made = 0
        port = free_port()
        self.url = f"spark://{LOOPBACK}:{port}"
        words = ["--host", LOOPBACK, "-p", str(port), "--webui-port", str(free_port())]
        self._master = self._started("master", f"{_PLACE}.master.Master", *words)
        assert serve.listening(port, _START_S, self._master)
        for _ in range(workers):
            self.add()

    @property
    def words(self) -> list[str]:
        """The words by which a command works here, on all workers."""
        jars, more = with_archive()
        said = {
            "spark.driver.host": LOOPBACK,
            "spark.executor.extraClassPath": jars,
            "spark.executor.extraJavaOptions": more,
        }
        given = [word for name, value in said.items() for word in ("--conf", f"{name}={value}")]
        return ["--master", self.url, "--memory", "1g", *given]

    def add(self) -> None:
        """Start a worker."""
        self._made += 1
        name = f"worker{self._made}"
        words = ["-c", "1", "-m", "1g", "--host", LOOPBACK, "-d", str(self._directory / f"{name}-work")]
        words += ["--webui-port", str(free_port()), self.url]
        self._workers[name] = self._started(name, f"{_PLACE}.worker.Worker", *words)

    def _started(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        """Start a Java of the cluster."""
        found, home = java.find(), spark_home()
        scala = next((home / "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
        told = {
            "SPARK_HOME": str(home), "JAVA_HOME": str(found.home), "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self._directory / name), "PYTHONPATH": str(ROOT),
            "SPARK_SCALA_VERSION": scala,  # spark-class says so else, and workers ask for it
        }  # fmt: skip
        command = [found.program, *options("512m"), *archived(found), SERIAL, *words]
        with (self._directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=alone() | told, cwd=self._directory)

    def kill(self, is_over: Callable[[], bool]) -> str:
        """Kill the worker that is the first to hold rows that others are to fetch, and return its name; "" if
        the work `is_over` before that, or nobody holds any for minutes."""
        until(lambda: is_over() or bool(self._holding()), _WORK_S)
        holding = self._holding()
        if is_over() or not holding:
            return ""
        process = self._workers.pop(holding[0])
        process.kill()
        process.wait()
        return holding[0]

    def _holding(self) -> list[str]:
        """Return the workers that hold rows for others: in files, which stay until the job's end."""
        return [name for name in self._workers if any((self._directory / name).glob(_SHUFFLED))]

    def close(self) -> None:
        """End all, by force if they do not end by themselves."""
        every = [*self._workers.values(), self._master]
        for process in every:
            process.terminate()
        for process in every:
            end(process, _END_S)
