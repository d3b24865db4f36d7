"""The rows of a capture as a DataFrame."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from capture import files, schema
from capture.files import NAMES
from pipeline.errors import PipelineError
from pipeline.input import stored
from pipeline.input.span import Span
from pipeline.input.stored import STORES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_SYSTEM: Final = ("S3AFileSystem not found", "No FileSystem for scheme")
"""Spark's words if it lacks the jars for a URL."""
_SHOWN: Final = 5  # captures that a message lists
PATHS: Final = {"__globPaths__": "false"}
"""The option by which Spark reads a path as a path: else `cap[1]` would be `cap1`."""


def is_remote(directory: str) -> bool:
    """Return whether a directory is on a cluster's own file system (hdfs://, s3a://), which only Spark can
    look into."""
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
    marked = spark.read.schema(schema.DDL_PARTITIONED).option("buscoupler.read", uuid4().hex)
    reader, place = marked.options(**({} if is_remote(directory) else PATHS)), without_settings(directory)
    if not _is_delta(directory):
        return reader.option("pathGlobFilter", f"*{files.FILE_SUFFIX}").parquet(place)
    if knows_delta:
        return reader.format("delta").load(place)
    paths = [f"{place.rstrip('/')}/{name}" for name in files.logged(directory)]
    return reader.option("basePath", place).parquet(*paths)


def without_settings(directory: str) -> str:
    """Return the place by which an engine reads: a URL without its settings, or a path, which has none."""
    return directory.partition("?")[0] if is_remote(directory) else directory


def _is_delta(directory: str) -> bool:
    if not is_remote(directory):
        return files.is_delta(Path(directory))
    return directory.startswith(STORES) and stored.is_delta(directory)


def by_engine(spark: "SparkSession", url: str) -> str:
    """Return the URL by which the engine itself reads a store: Spark knows `s3a://` for `s3://`, if it has
    the jars. "" if it has none. Other URLs are the engine's affair."""
    if not url.startswith(STORES):
        return url
    for one in dict.fromkeys((url, url.replace("s3://", "s3a://", 1))):
        try:
            spark.read.text(f"{without_settings(one).rstrip('/')}/{NAMES}").schema  # noqa: B018 - Connect analyses no earlier
        except Exception as error:
            if any(words in str(error) for words in _NO_SYSTEM):
                continue
        return one
    return ""


def read_stored(spark: "SparkSession", url: str, span: Span) -> "DataFrame":
    """Return the rows of the files of a span in an object store, with `date` and `gateway`: Python reads
    them on Spark's workers, for an engine that cannot itself."""
    from pipeline.input.source import Buscoupler, options_of

    spark.dataSource.register(Buscoupler)
    reader = spark.read.format(Buscoupler.name()).options(**options_of(span))
    return reader.option("buscoupler.read", uuid4().hex).load(url)
