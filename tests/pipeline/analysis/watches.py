"""A watch as its job runs it, in a session that is there."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.jobs.record import OpenCapture
from pipeline.jobs.watch import JOB
from pipeline.output.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS: Final = 1.0
"""The length of a window of rates, if a test says no other."""


def options(output: Path, **more: object) -> argparse.Namespace:
    """Return the options of a command line, with `more` in their place."""
    made = JOB.parsed("capture", "--output", str(output), "--seconds", str(SECONDS), "--once", "--quiet")
    return argparse.Namespace(**vars(made) | more)


def run(options: argparse.Namespace, spark: "SparkSession", where: str) -> int:
    return JOB.run(options, OpenCapture(spark, where, Progress(quiet=True))) if JOB.run else -1
