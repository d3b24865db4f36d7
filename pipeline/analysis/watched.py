"""The tables that a watch writes (`pipeline.analysis.watch`), as a reader sees them, and their directories.

A batch's rates are in `rates/batch=N`, its alerts in `alerts/batch=N`. Many directories are merged into the
last of them, which then has the file `_MERGED-LEVEL-FIRST`: it stands for the batches FIRST to N. Two
directories change places for that in one step, so `parts` names each batch once, whenever the watch is
killed.

Directories of one level become one of the next, and a large one stays as it is. So what a merge rewrites does
not grow with the age of the watch, and each row is rewritten a few times only.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from capture.compact import exchange
from pipeline.analysis.rates import best
from pipeline.errors import PipelineError
from pipeline.input.read import PATHS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MERGE_AT: Final = 64
"""Directories of one level that become one."""
MERGED_BYTES: Final = 64 << 20
"""The most that one merge rewrites. A directory of half as much is not merged again."""

_MERGED: Final = re.compile(r"_MERGED(?:-(?P<level>\d+)-(?P<first>\d+))?")
_ASIDE: Final = "_merging"
_SUMS: Final = ("n", "bytes")
_SHOWN: Final = 20


def batches(directory: Path) -> dict[int, Path]:
    """Return the batches that are complete, by number, in order."""
    done = [path.parent for path in directory.glob("batch=*/_SUCCESS")]
    return dict(sorted((int(path.name.partition("=")[2]), path) for path in done))


class Part(NamedTuple):
    """A directory that stands for the batches from `first` to the one in its name. `level` says how often
    its rows were merged."""

    path: Path
    first: int
    level: int


def parts(directory: Path) -> dict[int, Path]:
    """Return the directories that count, by number: those that no merged one stands for."""
    return {number: part.path for number, part in _parts(directory).items()}


def _parts(directory: Path) -> dict[int, Part]:
    found, begin = dict[int, Part](), float("inf")
    for number, path in reversed(batches(directory).items()):
        if number < begin:
            found[number] = _part(path, number)
            begin = found[number].first
    return dict(reversed(found.items()))


def _part(path: Path, number: int) -> Part:
    marks = (_MERGED.fullmatch(one.name) for one in path.glob("_MERGED*"))
    for mark in filter(None, marks):  # an older version wrote no numbers
        return Part(path, int(mark["first"] or 0), int(mark["level"] or 1))
    return Part(path, number, 0)


def summed(rows: "DataFrame") -> "DataFrame":
    """Add up the rates of several batches."""
    keys = [name for name in rows.columns if name not in _SUMS]
    return rows.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in _SUMS))


def merge(
    spark: "SparkSession", directory: Path, number: int, joined: "Callable[[DataFrame], DataFrame]"
) -> None:
    """Merge directories of the batches before `number`, if there are many: `joined` makes the rows of one
    from theirs.

    Nothing happens where the file system cannot exchange directories.
    """
    while due := _due(part for one, part in _parts(directory).items() if one < number):
        aside = directory / _ASIDE
        if not _can_exchange(aside):
            return
        rows = spark.read.options(**PATHS).parquet(*(str(part.path) for part in due))
        joined(rows).coalesce(1).write.mode("overwrite").parquet(str(aside))
        (aside / f"_MERGED-{due[0].level + 1}-{due[0].first}").touch()
        exchange(aside, due[-1].path)
        for old in batches(directory).keys() - parts(directory).keys():
            shutil.rmtree(directory / f"batch={old}", ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def _due(found: Iterable[Part]) -> list[Part]:
    """Choose directories to merge: the oldest of many that follow each other and have the same level."""
    sizes = ((part, _size_bytes(part.path)) for part in found)
    for (_, is_full), some in groupby(sizes, lambda one: (one[0].level, 2 * one[1] >= MERGED_BYTES)):
        run = list(some)
        if len(run) >= MERGE_AT and not is_full:
            return list(_within(run[:MERGE_AT], MERGED_BYTES))
    return []


def _within(run: Iterable[tuple[Part, int]], limit_bytes: int) -> Iterator[Part]:
    for part, size_bytes in run:
        limit_bytes -= size_bytes
        if limit_bytes < 0:
            return
        yield part


def _size_bytes(path: Path) -> int:
    return sum(one.stat().st_size for one in path.glob("*.parquet"))


def _can_exchange(aside: Path) -> bool:
    """Try whether the file system can exchange directories, before anything large is written for that."""
    shutil.rmtree(aside, ignore_errors=True)
    pair = aside / "one", aside / "other"
    for one in pair:
        one.mkdir(parents=True)
    try:
        exchange(*pair)
    except OSError:
        return False
    finally:
        shutil.rmtree(aside)
    return True


def rates(spark: "SparkSession", output: Path, seconds: float) -> "DataFrame":
    """Return the rates so far, over all batches, with the length of window that the watch has."""
    return best(spark.read.options(**PATHS).parquet(*map(str, parts(output / "rates").values())), seconds, 1)


def last(spark: "SparkSession", output: Path) -> "DataFrame":
    """Return the last values so far. Raises `PipelineError` if no batch has been written."""
    found = batches(output / "last")
    if not found:
        raise PipelineError(f"{output}: no watch has written a batch there")
    return spark.read.options(**PATHS).parquet(str(found[max(found)]))


def alerts(spark: "SparkSession", output: Path) -> "DataFrame | None":
    """Return the alerts in files; None if there are none, or if they go elsewhere."""
    found = parts(output / "alerts")
    return spark.read.options(**PATHS).parquet(*map(str, found.values())) if found else None


def tables(spark: "SparkSession", output: Path, seconds: float) -> "list[tuple[str, DataFrame]]":
    """Return the tables with their titles: last values, rates of the newest windows, newest alerts."""
    newest = last(spark, output)
    by_time = rates(spark, output, seconds).orderBy(F.desc("start_ns"), "bus", "token1")
    found = [("Last values", newest), ("Rates, the newest first", by_time.limit(_SHOWN))]
    raised = alerts(spark, output)
    if raised is not None:
        found.append(("Alerts, the newest first", raised.orderBy(F.desc("ts_ns"), "bus").limit(_SHOWN)))
    return found
