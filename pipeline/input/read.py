"""The rows of a capture as a DataFrame."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from capture import files, schema
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORES: Final = ("s3://", "s3a://")
"""The object stores that we look into ourselves; not into hdfs:// and others."""
_SHOWN: Final = 5  # captures that a message lists


def is_remote(directory: str) -> bool:
    """Whether the directory is on a cluster's own file system (hdfs://, s3a://), which only Spark can look
    into."""
    return "://" in directory


def root(directory: str) -> str:
    """Find the directory of the days below a recorder's, which may itself be given.

    Raises `CaptureError` if there is no capture, and `PipelineError` if there are several.
    """
    if is_remote(directory):
        return directory
    found = {path.absolute().parents[2] for path in files.finished(Path(directory))}
    if len(found) > 1:
        raise PipelineError(f"{directory}: several captures in it; give one of {_some(found)}")
    return str(found.pop())


def followed(directory: str) -> str:
    """Find the directory of the days as `root` does; it may have no file yet. Raises as `root` does."""
    if is_remote(directory):
        return directory
    if files.is_delta(Path(directory)):
        raise PipelineError(f"{directory}: a Delta table cannot be followed: follow the recorder's directory")
    if any(files.listed(Path(directory))):
        return root(directory)
    path = Path(directory).absolute()
    if not path.is_dir():
        raise PipelineError(f"{directory}: there is no such directory")
    return str(path if path.name == files.CAPTURE else files.days_directory(path))


def _some(paths: set[Path]) -> str:
    """List the first few of many."""
    first, *rest = sorted(map(str, paths))
    more = f" and {len(rest) - _SHOWN + 1} more" if len(rest) >= _SHOWN else ""
    return ", ".join([first, *rest[: _SHOWN - 1]]) + more


def size_bytes(directory: str) -> int:
    """Return the size of all files of a local capture."""
    return sum(path.stat().st_size for path in files.listed(Path(directory)))


def read(spark: "SparkSession", directory: str, knows_delta: bool = False) -> "DataFrame":
    """Return all rows of the files under `directory` (from `root`), with `date` and `gateway`.

    Of a Delta table these are the files that its log names: we read the log, so that Spark needs no jar, or
    the engine does if it `knows_delta`. Raises `CaptureError` if the log cannot be read.

    The option makes this read's plan differ from any other's: by it a resident server finds what it has
    cached, and would give the rows of a time when the directory had fewer files.
    """
    reader = spark.read.schema(schema.DDL_PARTITIONED).option("buscoupler.read", uuid4().hex)
    if not _is_delta(directory):
        return reader.option("pathGlobFilter", f"*{files.FILE_SUFFIX}").parquet(directory)
    if knows_delta:
        return reader.format("delta").load(directory)
    paths = [f"{directory.rstrip('/')}/{name}" for name in files.logged(directory)]
    return reader.option("basePath", directory).parquet(*paths)


def _is_delta(directory: str) -> bool:
    if not is_remote(directory):
        return files.is_delta(Path(directory))
    if not directory.startswith(STORES):
        return False
    from capture.stores import store_of

    return bool(store_of(directory).sizes(files.DELTA_LOG))
