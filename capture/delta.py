"""Delta tables of capture files: the files stay as they are, and a Delta log says which ones count.

Delta Lake's protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md. Needs deltalake.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable as Log
from deltalake import Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyarrow.parquet import ParquetFile

from capture.by_url import bare, settings
from capture.compact import Day, Source, groups_of, merged
from capture.files import FILE_SUFFIX, CaptureError, is_ours, listed, logged, opened, topology_of
from capture.plainly import takes_no_delta
from capture.schema import DATE, GATEWAY, arrow_schema, file_schema
from capture.stores import Store, said

_PARTITIONS: Final = [DATE, GATEWAY]
_KEPT_H: Final = 168
"""Files that are in the table no more stay so long, for who still reads them: the least that Delta allows."""
_BOUNDED: Final = ("ts_ns", "boot", "cap_seq", "kind")
"""The columns whose least and greatest values the log has, by which readers pass by files."""


class DeltaTable:
    """A table with a Delta log, which is made with the first files."""

    def __init__(self, store: Store, url: str) -> None:
        """Know the table, if there is one. Raises `CaptureError` for a path that deltalake does not take."""
        if takes_no_delta(url):
            raise CaptureError(
                f"{url}: no Delta table can be there: deltalake takes no backslash, %XX or control character "
                "in a path; choose another one"
            )
        self.store, self._given = store, url
        is_remote = "://" in url
        self._url = bare(url) if is_remote else url
        self._settings = settings(url) if is_remote else None

    def files(self, place: str) -> dict[str, int]:
        with said(self._url, DeltaError):
            found = logged(self._given) if Log.is_deltatable(self._url, self._settings) else {}
        return {path: size for path, size in found.items() if path.startswith(f"{place}/")}

    def add(self, place: str, paths: Sequence[Path]) -> None:
        for path in paths:
            self.store.put(path, f"{place}/{path.name}")
        added = [_added(place, path) for path in paths]
        with said(self._url, DeltaError):
            if not Log.is_deltatable(self._url, self._settings):
                create_table_with_add_actions(
                    self._url, schema(), added, partition_by=_PARTITIONS, storage_options=self._settings
                )
                return
            log = Log(self._url, storage_options=self._settings)
            if missing := _missing(log):
                log.alter.add_columns(missing)
            log.create_write_transaction(added, "append", log.schema(), _PARTITIONS)


def compact(table: Path, before: str, file_bytes: int) -> Iterator[Day]:
    """Compact the days before a day of a table on this machine, as `capture.compact` does with a capture.

    Each day of a gateway is one commit to the log. Who reads goes on with the old files, which are deleted a
    week later at the earliest, by a later call. Raises `CaptureError`.
    """
    paths = [path for path in listed(table) if path.parent.parent.name.partition("=")[2] < before]
    for directory, some in groupby(paths, lambda path: path.parent):
        several = [group for group in groups_of(_ours(some), set(), file_bytes) if len(group) > 1]
        if several:
            yield _compacted(table, directory, several)
    with said(table, DeltaError):
        Log(str(table)).vacuum(retention_hours=_KEPT_H, dry_run=False, full=True)


def _ours(paths: Iterable[Path]) -> Iterator[Source]:
    """Leave out the files that another program has rewritten: it has made them as large as it likes."""
    for path in paths:
        with opened(path) as file:
            source = Source(path, topology_of(file)) if is_ours(file) else None
        if source is not None:
            yield source


def _compacted(table: Path, directory: Path, several: list[list[Path]]) -> Day:
    place = directory.relative_to(table).as_posix()
    made = dict[Path, int]()
    for group in several:
        run, number = group[0].stem.split("-")[:2]
        target = directory / f"{run}-{number}-{uuid4().hex[:8]}{FILE_SUFFIX}"
        made[target] = merged(group, target)
    old = {path: path.stat().st_size for group in several for path in group}
    _replace(table, place, old, list(made))
    return Day(directory, len(old), sum(old.values()), len(made), sum(made.values()))


def _replace(table: Path, place: str, old: Mapping[Path, int], made: list[Path]) -> None:
    """Put files in the place of `old` ones (with their sizes in bytes), in one commit: no row changes."""
    now_ms = time.time_ns() // 1_000_000
    removed = [
        RemoveAction(_path(place, path), False, now_ms, size_bytes, _values(place))
        for path, size_bytes in old.items()
    ]
    added = [_added(place, path, is_new=False) for path in made]
    with said(table, DeltaError):
        log = Log(str(table))
        log.create_write_transaction([*removed, *added], "append", log.schema(), _PARTITIONS)


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


def _added(place: str, path: Path, is_new: bool = True) -> AddAction:
    with opened(path) as file:
        stats = json.dumps(_stats(file))
    about = path.stat()
    changed_ms = about.st_mtime_ns // 1_000_000
    return AddAction(_path(place, path), about.st_size, _values(place), changed_ms, is_new, stats)


def _path(place: str, path: Path) -> str:
    return quote(f"{place}/{path.name}", safe="/=")


def _values(place: str) -> dict[str, str | None]:
    parts = (part.partition("=") for part in place.split("/"))
    return {name: value for name, _, value in parts}


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
