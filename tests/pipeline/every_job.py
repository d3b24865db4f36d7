"""A program that runs every job on a capture in one session, and prints the results as one JSON object.

python -m tests.pipeline.every_job DIRECTORY [--remote URL | --master URL] [--without JOB]
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import jobs
from pipeline.input import sound
from pipeline.input.names import known
from pipeline.jobs.opening import opened
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
from tests.rigs.planted.names import FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = [job.name for job in jobs.every() if job.tables is not None]
Answers = dict[str, dict[str, list[str]]]


def without_all_but(*wanted: str) -> list[str]:
    """Return words of this program that leave out the other jobs."""
    return [word for job in TABLES if job not in wanted for word in ("--without", job)]


def options(job: str, directory: str, *words: str) -> argparse.Namespace:
    """Return a job's options, as the command line makes them."""
    names = ["--names", f"{directory}/{FILE}"] if job == "tokens" else []
    return jobs.find(job).parsed(directory, "--quiet", *names, *words)


def answers(spark: "SparkSession", where: str, directory: str, wanted: Iterable[str] = TABLES) -> Answers:
    """Return each job's whole tables for the files at `where`, with their rows as sorted texts."""
    names = known(spark, where, options("tokens", directory).names)
    newest_ns = sound.look(Path(where), thorough=False).newest
    capture = OpenCapture(spark, where, Progress(quiet=True), names, newest_ns=newest_ns)
    return {name: _tables(name, directory, capture) for name in wanted}


def _tables(name: str, directory: str, capture: OpenCapture) -> dict[str, list[str]]:
    make = jobs.find(name).tables
    assert make is not None
    return {
        table.name: sorted(str(_plain(row.asDict(recursive=True))) for row in table.frame.collect())
        for table in make(options(name, directory), capture)
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[])
    mine, words = parser.parse_known_args()
    directory, *where_spark = words
    with opened(jobs.find("last"), options("last", directory, *where_spark)) as capture:
        wanted = [name for name in TABLES if name not in mine.without]
        json.dump(answers(capture.spark, capture.directory, directory, wanted), sys.stdout)


if __name__ == "__main__":
    main()
