"""The choice of an engine and its place: Spark on this machine by default; else what the user asks for."""

import argparse
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from bus.extras import LIBRARIES, absent, lacking
from bus.needs import Library
from pipeline.engine import jars, java, sail
from pipeline.errors import PipelineError

Engine = Literal["spark", "sail"]
SPARK: Final = "spark"
SAIL: Final = "sail"
ENGINES: Final = (SPARK, SAIL)
VARIABLE: Final = "BUSCOUPLER_ENGINE"
"""The environment's word for `--engine`, once for all commands."""

_MANAGED: Final = ("yarn", "k8s:")
_MODULES: Final = ("numpy", "pyarrow")


class Where(NamedTuple):
    """The place of a session: an `engine` in a process of ours; or a cluster's `master`; or a Connect server
    (`remote`); or, with `submitted`, where spark-submit says. `memory` (512m, 4g) is for what runs on this
    machine, `conf` are settings of Spark's that the user gives: they win. `resident`: a Spark that
    stays for the next command. `store`: variables by which Sail finds an object store."""

    engine: str = SPARK
    master: str = ""
    remote: str = ""
    submitted: bool = False
    memory: str = "4g"
    conf: Mapping[str, str] = MappingProxyType({})
    resident: bool = False
    store: Mapping[str, str] = MappingProxyType({})

    @property
    def on_sail(self) -> bool:
        return self.engine == SAIL

    @property
    def here(self) -> bool:
        """Whether Spark or Sail runs on this machine, as we set it up."""
        return not (self.remote or self.submitted) and (not self.master or self.master.startswith("local"))

    @property
    def managed(self) -> bool:
        """Whether YARN or Kubernetes manages the cluster."""
        return self.master.startswith(_MANAGED)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a job runs."""
    parser.add_argument(
        "--engine", choices=ENGINES, help=f"on this machine: Spark, or Sail without Java (${VARIABLE}; spark)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--master", metavar="URL", default="", help="a cluster's master; local[N] is Spark on this machine"
    )
    where.add_argument(
        "--remote", metavar="URL", default="", help="a Spark Connect server: sc://HOST:PORT ($SPARK_REMOTE)"
    )
    parser.add_argument(
        "--conf", type=_setting, action="append", default=[], metavar="K=V", help="a setting of Spark's"
    )
    parser.add_argument(
        "--no-resident", action="store_true", help="leave no Spark behind for the next command, and use none"
    )


def _setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{word}: give NAME=VALUE")
    return name, value


def decide(options: argparse.Namespace, able: bool) -> Where:
    """Decide by options and environment; `able`: the job runs on Sail too.

    Raises `PipelineError` if the job is asked for on Sail and does not run there, if two places are asked
    for, or if the engine is not installed.
    """
    if options.engine and (options.master or options.remote):
        raise PipelineError("--engine is for this machine: give no --master or --remote with it")
    if words := jars.clash():
        raise PipelineError(f"{options.job}: {words}")
    ours = Where(memory=options.memory, conf=dict(options.conf))
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which started us
    remote = options.remote or ("" if options.master else os.environ.get("SPARK_REMOTE", ""))
    if not options.engine and (submitted or options.master or remote):
        if options.master:
            _check_spark(options.job, able=False)
        return ours._replace(master=options.master, remote=remote, submitted=submitted and not remote)
    engine = options.engine or os.environ.get(VARIABLE) or SPARK
    if engine not in ENGINES:
        raise PipelineError(f"{VARIABLE}={engine}: give one of {', '.join(ENGINES)}")
    if engine == SAIL and not able and options.engine:
        raise PipelineError(f"{options.job} does not run on Sail: it takes Spark")
    if engine == SAIL and able:
        return ours._replace(engine=SAIL)
    _check_spark(options.job, able)
    return ours._replace(resident=not (options.no_resident or options.conf))


def _check_spark(job: str, able: bool) -> None:
    if jars.installed():
        return
    if able and sail.installed():
        raise PipelineError(
            f"{job}: Spark is not installed, but Sail is: give --engine {SAIL}, or set {VARIABLE}={SAIL}"
        )
    raise PipelineError(lacking(job, "Spark", "engines" if sail.installed() else "pipeline"))


def check(place: Where, job: str, on_workers: bool) -> None:
    """Raise `PipelineError` if a job lacks a library, or Java, for the engine of its place. `on_workers`: its
    workers run Python of ours, for which Spark's client asks for pandas."""
    if place.on_sail:
        return sail.check()
    if place.remote:
        return _check_modules(
            f"{job} on a Connect server", "connect", ("pyspark", "grpc", "pandas", *_MODULES)
        )
    _check_modules(job, "pipeline", (*_MODULES, "pandas") if on_workers else _MODULES)
    if not place.submitted:
        java.find()


def _check_modules(what: str, extra: str, modules: Iterable[str]) -> None:
    for module in modules:
        package, _ = LIBRARIES.get(module, (module, ""))
        if words := absent(what, Library(module, package, "engines" if sail.installed() else extra)):
            raise PipelineError(words)
