"""Delta tables of capture files: the files stay as they are, and a Delta log says which ones count.

Delta Lake's protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md. Needs deltalake.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
from deltalake import DeltaTable as Log
from deltalake import Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyarrow.parquet import ParquetFile

from capture.files import opened
from capture.schema import DATE, GATEWAY, arrow_schema, file_schema
from capture.stores import Store, said

_PARTITIONS: Final = [DATE, GATEWAY]
_BOUNDED: Final = ("ts_ns", "boot", "cap_seq", "kind")
"""The columns whose least and greatest values the log has, by which readers pass by files."""


class DeltaTable:
    """A table with a Delta log, which is made with the first files."""

    def __init__(self, store: Store, url: str) -> None:
        self.store, self._url = store, url

    def files(self, place: str) -> dict[str, int]:
        log = _log(self._url)
        if log is None:
            return {}
        found = pa.table(log.get_add_actions(flatten=True))
        sizes = zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True)
        return {unquote(path): size for path, size in sizes if unquote(path).startswith(f"{place}/")}

    def add(self, place: str, paths: Sequence[Path]) -> None:
        for path in paths:
            self.store.put(path, f"{place}/{path.name}")
        added = [_added(place, path) for path in paths]
        with said(self._url, DeltaError):
            log = _log(self._url)
            if log is None:
                create_table_with_add_actions(self._url, schema(), added, partition_by=_PARTITIONS)
                return
            if missing := _missing(log):
                log.alter.add_columns(missing)
            log.create_write_transaction(added, "append", log.schema(), _PARTITIONS)


def schema() -> Schema:
    """Return the schema of a Delta table of captures. Delta has no unsigned numbers: tokens are longs."""

    longs = pa.list_(pa.int64())
    columns = file_schema(arrow_schema()).remove_metadata()
    fields = [(one.name, longs if pa.types.is_list(one.type) else one.type) for one in columns]
    return Schema.from_arrow(pa.schema([*fields, (DATE, pa.date32()), (GATEWAY, pa.string())]))


def _missing(log: Log) -> list[Field]:
    """Return the columns that are new since the table was made."""
    there = {field.name for field in log.schema().fields}
    return [field for field in schema().fields if field.name not in there]


def _log(url: str) -> Log | None:
    with said(url, DeltaError):
        return Log(url) if Log.is_deltatable(url) else None


def _added(place: str, path: Path) -> AddAction:
    with opened(path) as file:
        stats = json.dumps(_stats(file))
    values = dict(part.split("=", 1) for part in place.split("/"))
    about = path.stat()
    name = quote(f"{place}/{path.name}", safe="/=")
    return AddAction(name, about.st_size, values, about.st_mtime_ns // 1_000_000, True, stats)


def _stats(file: ParquetFile) -> dict[str, Any]:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    found: dict[str, Any] = {"numRecords": file.metadata.num_rows, "minValues": {}, "maxValues": {}}
    for name in _BOUNDED:
        column = file.schema_arrow.get_field_index(name)
        stats = [group.column(column).statistics for group in groups]
        if all(one is not None and one.has_min_max for one in stats):
            found["minValues"][name] = min(one.min for one in stats)
            found["maxValues"][name] = max(one.max for one in stats)
    return found
