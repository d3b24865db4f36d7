"""Rehearsals: small jobs run once, so that later starts find classes in an archive, or code compiled."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bus.machine.scratch import Scratch
from pipeline import cache, jobs
from pipeline.engine import java, resident, session
from pipeline.engine.archives import archive, begun, store
from pipeline.engine.choice import Where
from pipeline.engine.jars import cache_directory, unsign
from pipeline.engine.jvm import Jvm
from pipeline.errors import PipelineError
from pipeline.input import sample
from pipeline.input.read import read, root
from pipeline.jobs.record import OpenCapture, collected
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS: Final = 6


def archive_classes(memory: str) -> int:
    """Make the archive for this Java and this Spark, again if there is one. Returns 0."""
    tell = Progress(quiet=False)
    found = java.find()
    target = archive(found)
    try:
        unsign()
    except OSError as error:
        raise PipelineError(
            f"{cache_directory()}: no class archive can be put there: {error.strerror}"
        ) from None
    tell(f"Java {found.version} at {found.home}")
    partial = begun(target)
    try:
        _record(Jvm(found, memory, quick=True, record=partial))
        if not partial.exists():
            raise PipelineError(
                "Java made no class archive: there may be no room for it, or it does not support them"
            )
        store(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    tell(f"{target} ({target.stat().st_size / 1e6:.0f} MB): Spark starts faster from now on")
    return 0


def _record(jvm: Jvm) -> None:
    with Scratch() as name, session.session(Where(), jvm) as spark:
        touch(spark, Path(name) / "capture")
        read(spark, root(f"{name}/capture")).write.parquet(f"{name}/out")


def warm_server(url: str) -> None:
    """Run the jobs some times on a Connect server, whose Java compiles what it does often."""
    with Scratch() as name, session.session(Where(remote=url)) as spark:
        for _ in range(_ROUNDS):
            touch(spark, Path(name) / "capture")


def touch(spark: "SparkSession", directory: Path) -> None:
    """Run the table jobs that are commands on a capture, which is made if `directory` is not there."""
    if not directory.exists():
        sample.write(directory)
    capture = OpenCapture(spark, root(str(directory)), Progress(quiet=True))
    for job in jobs.every():
        if job.tables is not None and job.is_command and not job.on_workers:
            for _ in collected(job.tables(job.parsed(str(directory)), capture)):
                pass


def warm_resident() -> None:
    """Run the jobs once on the Spark that the environment names."""
    with Scratch() as name, resident.session_in() as spark:
        for key, value in session.SMALL.items():
            spark.conf.set(key, value)
        touch(spark, Path(name) / "capture")
        cache.release()


if __name__ == "__main__":
    warm_server(sys.argv[1]) if sys.argv[1:] else warm_resident()
