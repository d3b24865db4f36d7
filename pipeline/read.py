"""Reading a capture: where its segments are, whether they can be read, and its rows as a DataFrame."""

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from capture import schema
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAGIC: Final = b"PAR1"


def is_remote(directory: str) -> bool:
    """A cluster's own file system (hdfs://, s3a://): only Spark can look into it."""
    return "://" in directory


def root(directory: str) -> str:
    """The directory of the segments under a recorder's directory, which may itself be given.

    Raises `PipelineError` if there is none.
    """
    if is_remote(directory):
        return directory
    path = Path(directory)
    if not path.exists():
        raise PipelineError(f"{directory}: there is no such directory")
    if not path.is_dir():
        raise PipelineError(
            f"{directory}: not a directory; give the recorder's, which holds {schema.CAPTURE}/"
        )
    inner = path / schema.CAPTURE
    found = inner if inner.is_dir() else path
    if not any(found.glob(f"{schema.DATE}=*/{schema.GATEWAY}=*")):
        raise PipelineError(
            f"{directory}: no capture in it (looked for {found}/{schema.DATE}=*/{schema.GATEWAY}=*/)"
        )
    return str(found)


def segments(directory: str) -> list[Path]:
    """Finished segments, oldest name first."""
    pattern = f"{schema.DATE}=*/{schema.GATEWAY}=*/*{schema.SEGMENT_SUFFIX}"
    return sorted(path for path in Path(directory).glob(pattern) if path.name[0] not in "._")


def check(paths: Iterable[Path]) -> int:
    """Look at every segment's end, and at its version. Returns how many there are.

    Raises `PipelineError` that names the first one that cannot be read, or is of a later version.
    """
    count = 0
    for path in paths:
        _check(path)
        count += 1
    if not count:
        raise PipelineError(
            "the capture has no finished segment yet: a recorder closes one a minute, and at its end"
        )
    return count


def _check(path: Path) -> None:
    import pyarrow.parquet as pq

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise PipelineError(f"{path}: not a file")
        metadata = pq.read_metadata(path).metadata or {}
    except PipelineError:
        raise
    except Exception as error:  # pyarrow's errors have no common root but this
        raise PipelineError(f"{path}: unreadable segment ({str(error).splitlines()[0][:120]})") from None
    version = metadata.get(schema.META_VERSION.encode(), b"").decode()
    if not version.isdigit():
        raise PipelineError(f"{path}: a Parquet file, but no segment of a capture")
    if int(version) > schema.VERSION:
        raise PipelineError(
            f"{path}: capture schema {version}, and this program knows up to {schema.VERSION}: "
            "update buscoupler"
        )


def read(spark: "SparkSession", directory: str) -> "DataFrame":
    """All rows of the segments under `directory` (from `root`), with `date` and `gateway`.

    The option makes this read's plan differ from any other's: by it a resident server finds what it has
    kept, and would give the rows of a time when the directory had fewer segments.
    """
    reader = spark.read.schema(schema.DDL_PARTITIONED).option("buscoupler.read", uuid4().hex)
    return reader.parquet(directory)
