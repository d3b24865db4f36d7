"""Places that a job writes to, looked at before an engine starts: that takes seconds, and a job minutes."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bus.machine.permissions import check_access
from capture.plainly import plainly
from pipeline import reach
from pipeline.errors import PipelineError
from pipeline.input.read import is_remote, without_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def absolute(path: str) -> str:
    """Return a path as an engine needs it, whose process has a working directory of its own."""
    return path if "://" in path else str(Path(path).absolute())


def write(frame: "DataFrame", directory: str, name: str) -> None:
    """Write a table as Parquet to `directory/name`, in place of what is there. A path is no pattern."""
    if "://" not in directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
    with plainly(directory) as place:
        frame.write.mode("overwrite").parquet(f"{place}/{name}")


def check(path: str) -> None:
    """Raise `PipelineError` if nothing can be written at a path, a file or directory that may not exist yet.

    A place on a cluster's own file system is left to Spark, if its server is there.
    """
    if "://" in path:
        reach.check_place(path)
        return
    place = Path(path).absolute()
    try:
        there = next(one for one in (place, *place.parents) if one.exists())
        if not (there.is_dir() or there == place):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        check_access(there, os.W_OK)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None


def check_table(option: str, table: str, capture: str) -> None:
    """Raise `PipelineError` if a table would be in the capture that it is made of, or has it in it: both have
    files by day and gateway, and neither could be told from the other."""
    if _is_below(table, capture):
        raise PipelineError(f"{option} {table}: the table would be in the capture: give another place")
    if _is_below(capture, table):
        raise PipelineError(f"{option} {table}: the capture is in it: give another place")


def _is_below(place: str, directory: str) -> bool:
    if is_remote(place) or is_remote(directory):
        place, directory = (without_settings(one).replace("s3a://", "s3://", 1) for one in (place, directory))
        return f"{place}/".startswith(f"{directory.rstrip('/')}/")
    return Path(place).resolve().is_relative_to(Path(directory).resolve())
