"""Capture files as they are written: Parquet (zstd), aside, synced and renamed. Needs pyarrow."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from capture import contents
from capture.schema import META_PREFIX, Kind, arrow_schema, file_schema

GROUP_ROWS: Final = 1 << 17
_DELTA: Final = ("ts_ns", "cap_seq", "seq")
_LEVEL: Final = 3


def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of `schema` and their summary to a new file, and sync it. Raises `OSError`."""
    with path.open("wb") as file:
        with _writer(file, file_schema(schema)) as writer:
            for table in contents.summarised(_groups(batches)):
                writer.write_table(table)
        file.flush()
        os.fsync(file.fileno())


def _writer(file: object, schema: pa.Schema) -> parquet.ParquetWriter:
    return parquet.ParquetWriter(
        file,
        schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[
            n if n != "tokens" else "tokens.list.element" for n in schema.names if n not in _DELTA
        ],
        column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches to tables of about `GROUP_ROWS`: bounded memory, and few, large groups for readers."""
    held, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def rows_schema(file: parquet.ParquetFile) -> pa.Schema:
    """Return the schema of the recorded rows of a capture file, with the metadata that its recorder gave."""
    words = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
    return arrow_schema({key: value for key, value in words.items() if key.startswith(META_PREFIX)})


def recorded(table: pa.Table) -> pa.Table:
    """Return the recorded rows of a table, without the summary."""
    return table.filter(pc.not_equal(table["kind"], Kind.CONTENTS.value))


def sync(directory: Path) -> None:
    """Make the names in a directory safe."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
