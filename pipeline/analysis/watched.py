"""The tables that a watch writes (`pipeline.analysis.watch`), as a reader sees them, and their directories.

A batch's rates are in `rates/batch=N`, its alerts in `alerts/batch=N`. Many batches are merged into the last
of them, which then has the file `_MERGED`: it stands for all before it. Two directories change places for
that in one step, so `parts` names each batch once, whenever the watch is killed.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from capture.compact import exchange
from pipeline.analysis.rates import best
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MERGE_AT: Final = 64
"""Batches that become one."""

_MERGED: Final = "_MERGED"
_ASIDE: Final = "_merging"
_SUMS: Final = ("n", "bytes")
_SHOWN: Final = 20


def batches(directory: Path) -> dict[int, Path]:
    """Return the batches that are complete, by number, in order."""
    done = [path.parent for path in directory.glob("batch=*/_SUCCESS")]
    return dict(sorted((int(path.name.partition("=")[2]), path) for path in done))


def parts(directory: Path) -> dict[int, Path]:
    """Return the batches that count: the newest merged one, and those after it."""
    found = batches(directory)
    first = max((number for number, path in found.items() if (path / _MERGED).exists()), default=-1)
    return {number: path for number, path in found.items() if number >= first}


def summed(rows: "DataFrame") -> "DataFrame":
    """Add up the rates of several batches."""
    keys = [name for name in rows.columns if name not in _SUMS]
    return rows.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in _SUMS))


def merge(
    spark: "SparkSession", directory: Path, number: int, joined: "Callable[[DataFrame], DataFrame]"
) -> None:
    """Merge the batches before `number` into one, if there are many: `joined` makes its rows of theirs.

    Nothing happens where the file system cannot exchange directories.
    """
    found = {one: path for one, path in parts(directory).items() if one < number}
    if len(found) < MERGE_AT:
        return
    newest, aside = max(found), directory / _ASIDE
    rows = spark.read.parquet(*map(str, found.values()))
    joined(rows).coalesce(1).write.mode("overwrite").parquet(str(aside))
    (aside / _MERGED).touch()
    with suppress(OSError):
        exchange(aside, found[newest])
        for old in (path for one, path in batches(directory).items() if one < newest):
            shutil.rmtree(old)
    shutil.rmtree(aside, ignore_errors=True)


def rates(spark: "SparkSession", output: Path, seconds: float) -> "DataFrame":
    """Return the rates so far, over all batches, with the length of window that the watch has."""
    return best(spark.read.parquet(*map(str, parts(output / "rates").values())), seconds, 1)


def last(spark: "SparkSession", output: Path) -> "DataFrame":
    """Return the last values so far. Raises `PipelineError` if no batch has been written."""
    found = batches(output / "last")
    if not found:
        raise PipelineError(f"{output}: no watch has written a batch there")
    return spark.read.parquet(str(found[max(found)]))


def alerts(spark: "SparkSession", output: Path) -> "DataFrame | None":
    """Return the alerts in files; None if there are none, or if they go elsewhere."""
    found = parts(output / "alerts")
    return spark.read.parquet(*map(str, found.values())) if found else None


def tables(spark: "SparkSession", output: Path, seconds: float) -> "list[tuple[str, DataFrame]]":
    """Return the tables with their titles: last values, rates of the newest windows, newest alerts."""
    newest = last(spark, output)
    by_time = rates(spark, output, seconds).orderBy(F.desc("start_ns"), "bus", "token1")
    found = [("Last values", newest), ("Rates, the newest first", by_time.limit(_SHOWN))]
    raised = alerts(spark, output)
    if raised is not None:
        found.append(("Alerts, the newest first", raised.orderBy(F.desc("ts_ns"), "bus").limit(_SHOWN)))
    return found
