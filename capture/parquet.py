"""Capture files as they are written: Parquet (zstd), aside, synced and renamed. Needs pyarrow."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from capture import contents
from capture.schema import META_PREFIX, Kind, arrow_schema, file_schema

GROUP_ROWS: Final = 1 << 17
_DELTA: Final = ("ts_ns", "cap_seq", "seq")
_LEVEL: Final = 3


class Sheet:
    """A capture file that is being written: rows of `schema` as they come, then their summary.

    `held_rows` wait in memory. Raises `OSError`, in every method but `abandon`.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("wb")
        self._writer = _writer(self._file, file_schema(schema))
        self._summary = contents.Summary()
        self._held = list[pa.RecordBatch]()
        self.held_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. They are written in groups of about `GROUP_ROWS`: few, large ones for readers."""
        self._held.append(batch)
        self.held_rows += batch.num_rows
        if self.held_rows >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are held, as a group."""
        if self._held:
            table = pa.Table.from_batches(self._held)
            self._writer.write_table(self._summary.widened(table))
        self._held, self.held_rows = [], 0

    def close(self, words: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write what is left, and words that go into the file's metadata, and sync the file."""
        self.flush()
        if (rows := self._summary.rows()) is not None:
            self._writer.write_table(rows)
        if words:
            self._writer.add_key_value_metadata(dict(words))
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is. What is left in its buffer is lost if the disk is full: that was told."""
        self._writer.is_open = False  # else Arrow would write the rest to it, when nobody hears that it fails
        with suppress(OSError):
            self._file.close()


def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of `schema` and their summary to a new file, and sync it. Raises `OSError`."""
    sheet = Sheet(path, schema)
    try:
        for batch in batches:
            sheet.add(batch)
        sheet.close()
    finally:
        sheet.abandon()


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
