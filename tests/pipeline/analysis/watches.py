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
    common = {"output": str(output), "alert": None, "to": None, "pattern": "alert", "seconds": SECONDS}
    places = {"post": None, "pipe": None, "call": None, "show": False, "live": None, "every_s": 5.0}
    return argparse.Namespace(**{**common, **places, "late_s": 600.0, "once": True, "quiet": True, **more})


def run(options: argparse.Namespace, spark: "SparkSession", where: str) -> int:
    return JOB.run(options, OpenCapture(spark, where, Progress(quiet=True))) if JOB.run else -1
