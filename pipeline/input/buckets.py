"""A reader of captures in an object store, for a Spark that has no file system for `s3a://`: pyspark does not
include the jars. pyarrow reads the files on the workers, several at a time in each task, or a part of one.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from capture import files
from capture.files import gateway_of
from capture.schema import DATE, GATEWAY, Kind
from pipeline.errors import PipelineError
from pipeline.input import stored
from pipeline.input.span import Span

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
    from pyspark.sql.types import StructType

PARTS: Final = 64
LEAST_BYTES: Final = 4 << 20
MOST_BYTES: Final = 64 << 20
"""A task reads a part of `PARTS` of a capture, but no less and no more than these bounds."""

_BATCH_ROWS: Final = 1 << 16


class Piece(InputPartition):
    """The share of one task: some files, of each the part `part` of `parts`."""

    def __init__(self, names: list[str], is_logged: bool, part: int = 0, parts: int = 1) -> None:
        self.names, self.is_logged, self.part, self.parts = names, is_logged, part, parts

    def groups(self, count: int) -> range:
        """Return the row groups of it, of a file that has `count`."""
        return range(self.part * count // self.parts, (self.part + 1) * count // self.parts)


def pieces(found: stored.Listing) -> Iterator[Piece]:
    """Divide files among tasks: small ones together, and large ones by their row groups."""
    most = min(max(sum(found.sizes.values()) // PARTS, LEAST_BYTES), MOST_BYTES)
    held, held_bytes = list[str](), 0
    for name, size in found.sizes.items():
        if held and held_bytes + size > most:
            yield Piece(held, found.is_logged)
            held, held_bytes = [], 0
        if size > most:
            parts = -(-size // most)
            yield from (Piece([name], found.is_logged, part, parts) for part in range(parts))
        else:
            held, held_bytes = [*held, name], held_bytes + size
    yield Piece(held, found.is_logged)


class BucketReader(DataSourceReader):
    """A reader of the columns of a schema, from the files of a span. Spark offers no other pruning of
    columns."""

    def __init__(self, url: str, span: Span, schema: "StructType") -> None:
        self.url, self.span, self.schema = url, span, schema

    def partitions(self) -> list[InputPartition]:
        """List the files. Raises `PipelineError` if the capture has none, not even outside of the span."""
        found = stored.listing(self.url, self.span)
        if not found.sizes and not stored.listing(self.url).sizes:
            raise PipelineError(f"{self.url}: no such bucket, or no capture in it ({DATE}=*/{GATEWAY}=*/*)")
        return [*pieces(found)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from pyarrow.parquet import ParquetFile

        from capture.stores import store_of

        assert isinstance(partition, Piece)
        store = store_of(self.url)
        for name in partition.names:
            with (
                store.opened(name) as stream,
                ParquetFile(stream, pre_buffer=True, page_checksum_verification=True) as file,
            ):
                if files.is_ours(file) or not partition.is_logged:
                    files.check_version(f"{self.url}/{name}", file.metadata.metadata or {})
                yield from self._batches(Path(name), file, partition.groups(file.num_row_groups))

    def _batches(self, path: Path, file: "ParquetFile", groups: range) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from pipeline.input.arrow import fitted

        wanted = to_arrow_schema(self.schema, timezone="UTC")
        columns = [name for name in wanted.names if name in file.schema_arrow.names]
        some = [group for group in groups if self._may_have(file, group)]
        day = date.fromisoformat(path.parts[-3].partition("=")[2])
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=some, columns=columns):
            rows = len(batch)
            place = {DATE: pa.repeat(day, rows), GATEWAY: pa.repeat(gateway_of(path), rows)}
            yield fitted({**dict(zip(columns, batch.columns, strict=True)), **place}, rows, wanted)

    def _may_have(self, file: "ParquetFile", group: int) -> bool:
        """Return whether a row group may have rows of the span. Summaries at the end of a file are of any."""
        about = file.metadata.row_group(group)
        kind, time = (
            about.column(file.schema_arrow.get_field_index(name)).statistics for name in ("kind", "ts_ns")
        )
        if not (self.span.is_bounded and kind and time and kind.has_min_max and time.has_min_max):
            return True
        return bool(kind.max >= Kind.CONTENTS or self.span.touches(time.min, time.max))
