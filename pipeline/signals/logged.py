"""The Delta log of a table of signals (https://github.com/delta-io/delta/blob/master/PROTOCOL.md). Needs
deltalake.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from deltalake import Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyarrow.parquet import ParquetFile

from capture.by_url import bare, settings
from capture.schema import DATE, GATEWAY
from capture.stores import said, store_of

_PARTITIONS: Final = [DATE, GATEWAY]
_BOUNDED: Final = ("ts_ns", "start_ns", "pattern", "signal")


def log(url: str, names: Sequence[str]) -> None:
    """Make files below `url` those of the table, in one commit. Raises `CaptureError`."""
    store, schemas, added = store_of(url), list[pa.Schema](), list[AddAction]()
    for name in names:
        with store.opened(name) as stream, ParquetFile(stream) as file:
            schemas.append(file.schema_arrow)
            added.append(_added(name, file, stream.size()))
    columns = pa.unify_schemas([one.remove_metadata() for one in schemas])
    parts = [*columns, pa.field(DATE, pa.date32()), pa.field(GATEWAY, pa.string())]
    is_remote = "://" in url
    with said(url, DeltaError):
        create_table_with_add_actions(
            bare(url) if is_remote else url, Schema.from_arrow(pa.schema(parts)), added, mode="overwrite",
            partition_by=_PARTITIONS, storage_options=settings(url) if is_remote else None,
        )  # fmt: skip


def _added(name: str, file: ParquetFile, size_bytes: int) -> AddAction:
    values = {key: value for key, _, value in (part.partition("=") for part in name.split("/")[:-1])}
    now_ms = time.time_ns() // 1_000_000
    return AddAction(quote(name, safe="/="), size_bytes, values, now_ms, True, json.dumps(_stats(file)))


def _stats(file: ParquetFile) -> dict[str, Any]:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    found: dict[str, Any] = {"numRecords": file.metadata.num_rows, "minValues": {}, "maxValues": {}}
    for name in _BOUNDED:
        place = file.schema_arrow.get_field_index(name)
        stats: list[Any] = [group.column(place).statistics for group in groups] if place >= 0 else [None]
        if all(one is not None and one.has_min_max for one in stats):
            found["minValues"][name] = min(one.min for one in stats)
            found["maxValues"][name] = max(one.max for one in stats)
    return found
