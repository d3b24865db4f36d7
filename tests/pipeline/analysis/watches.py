"""A watch as its job runs it, in a session that is there, and files that land where it looks."""

import argparse
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from capture import schema
from capture.files import capture_file, name_of
from pipeline.input import sample
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


def land(whole: Path, here: Path, gateways: str) -> None:
    """Copy the files of the gateways whose names match into the watched directory."""
    for path in (whole / "capture").glob(f"date=*/gateway={gateways}/*"):
        target = here / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def file(directory: Path, number: int, *values: tuple[float, float]) -> Path:
    """Write a new file: (seconds, value) for each frame that came onto a bus."""
    metadata = {schema.META_VERSION: "1", schema.META_GATEWAY: "gw", schema.META_BOOT: "0"}
    common = {"boot": 0, "kind": 0, "hub": "bus plant", "bus": "plant", "peer": "a", "dir": 0, "count": 1,
              "verdict": 0, "message_bytes": 24, "type": 1, "tokens": [1, 2]}  # fmt: skip
    rows = [
        {**common, "cap_seq": number + n, "ts_ns": sample.START_NS + int(seconds * 1e9),
         "payload": f"{value} {seconds}".encode()}
        for n, (seconds, value) in enumerate(values)
    ]  # fmt: skip
    day = datetime.fromtimestamp(sample.START_NS / 1e9, UTC).strftime("%Y-%m-%d")
    path = capture_file(directory, day, "gw", name_of(0, number))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.arrow_schema(metadata)), path)
    return path


def raised(spark: "SparkSession", output: Path) -> list[str]:
    """Return the texts of all alerts, as Spark reads the finished files."""
    return sorted(row.text for row in spark.read.parquet(str(output / "alerts")).collect())
