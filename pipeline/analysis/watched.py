"""The tables that a watch has written (`pipeline.analysis.watch`), as a reader sees them."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.rates import best
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SHOWN: Final = 20


def newest_batch(directory: Path) -> Path | None:
    """Return the directory of the newest batch that is complete."""
    done = [path.parent for path in directory.glob("batch=*/_SUCCESS")]
    return max(done, key=lambda path: int(path.name.partition("=")[2]), default=None)


def rates(spark: "SparkSession", output: Path, seconds: float) -> "DataFrame":
    """Return the rates so far, over all batches, with the length of window that the watch has."""
    return best(spark.read.parquet(str(output / "rates")).drop("batch"), seconds, 1)


def last(spark: "SparkSession", output: Path) -> "DataFrame":
    """Return the last values so far. Raises `PipelineError` if no batch has been written."""
    newest = newest_batch(output / "last")
    if newest is None:
        raise PipelineError(f"{output}: no watch has written a batch there")
    return spark.read.parquet(str(newest))


def alerts(spark: "SparkSession", output: Path) -> "DataFrame | None":
    """Return the alerts in files; None if there are none, or if they go elsewhere."""
    directory = output / "alerts"
    return spark.read.parquet(str(directory)) if any(directory.glob("*.parquet")) else None


def tables(spark: "SparkSession", output: Path, seconds: float) -> "list[tuple[str, DataFrame]]":
    """Return the tables with their titles: last values, rates of the newest windows, newest alerts."""
    newest = last(spark, output)
    by_time = rates(spark, output, seconds).orderBy(F.desc("start_ns"), "bus", "token1")
    found = [("Last values", newest), ("Rates, the newest first", by_time.limit(_SHOWN))]
    raised = alerts(spark, output)
    if raised is not None:
        found.append(("Alerts, the newest first", raised.orderBy(F.desc("ts_ns"), "bus").limit(_SHOWN)))
    return found
