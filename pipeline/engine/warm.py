"""`buscoupler warm`: run small jobs once, and keep the classes that it loaded as an archive for the
next starts."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline import commands, sample
from pipeline import read as capture
from pipeline.engine import java, session
from pipeline.engine.jars import cache_directory, unsign
from pipeline.engine.jvm import Jvm, archive
from pipeline.errors import PipelineError
from pipeline.jobs import run as jobs
from pipeline.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS: Final = 6


def run(options: argparse.Namespace) -> int:
    """0; the archive is for this Java and this Spark, and is made again by running this again."""
    tell = Progress(quiet=False)
    found = java.find()
    target = archive(found)
    try:
        unsign()
    except OSError as error:
        raise PipelineError(f"{cache_directory()}: {error.strerror}") from None
    tell(f"Java {found.version} at {found.home}")
    partial = target.with_suffix(f".{os.getpid()}.tmp")
    try:
        _record(options, Jvm(found, options.memory, quick=True, record=partial))
        if not partial.exists():
            raise PipelineError(
                "Java made no class archive: there may be no room for it, or it does not support them"
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    tell(f"{target} ({target.stat().st_size / 1e6:.0f} MB): Spark starts faster from now on")
    return 0


def _record(options: argparse.Namespace, jvm: Jvm) -> None:
    options.master = options.remote = None
    with tempfile.TemporaryDirectory() as name, session.session(options, jvm) as spark:
        touch(spark, Path(name) / "capture")
        capture.read(spark, capture.root(f"{name}/capture")).write.parquet(f"{name}/out")


def warm_server(url: str) -> None:
    """Run the jobs some times on a Connect server, whose Java compiles what it does often."""
    with (
        tempfile.TemporaryDirectory() as name,
        session.session(argparse.Namespace(master=None, remote=url)) as spark,
    ):
        for _ in range(_ROUNDS):
            touch(spark, Path(name) / "capture")


def touch(spark: "SparkSession", directory: Path) -> None:
    """What jobs usually do, on a capture that is made in `directory` where there is none."""
    if not directory.exists():
        sample.write(directory)
    for job in ("audit", "rates", "failovers", "last", "latency"):
        words = argparse.ArgumentParser()
        commands.arguments(words, job)
        options = words.parse_args([str(directory)])
        tables = jobs.JOBS[job](options, spark, capture.root(str(directory)))
        for _ in jobs.collected(tables):
            pass


if __name__ == "__main__":
    warm_server(sys.argv[1])
