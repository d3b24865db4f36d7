"""What every job says of a capture, as one JSON object, from one session.

python -m tests.pipeline.every_job DIRECTORY [--remote URL | --master URL] [--without JOB]
"""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from benchmarks.planted_names import FILE
from pipeline import commands
from pipeline.jobs import run as jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answers = dict[str, dict[str, list[str]]]


def options(job: str, directory: str, *words: str) -> argparse.Namespace:
    """As the command line makes them."""
    parser = argparse.ArgumentParser()
    commands.arguments(parser, job)
    names = ["--names", f"{directory}/{FILE}"] if job == "tokens" else []
    return parser.parse_args([directory, "--quiet", *names, *words])


def answers(spark: "SparkSession", where: str, directory: str, wanted: Iterable[str] = jobs.JOBS) -> Answers:
    """`where`: of the segments. Each job's tables to their last row, rows as text and sorted."""
    return {
        job: {
            table.name: sorted(str(_plain(row.asDict(recursive=True))) for row in table.frame.collect())
            for table in jobs.JOBS[job](options(job, directory), spark, where)
        }
        for job in wanted
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[])
    mine, words = parser.parse_known_args()
    directory, *where_spark = words
    with jobs.opened(options("last", directory, *where_spark)) as (spark, where, _):
        wanted = [job for job in jobs.JOBS if job not in mine.without]
        json.dump(answers(spark, where, directory, wanted), sys.stdout)


if __name__ == "__main__":
    main()
