"""Captures to upload: a day of several gateways, each of several files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from capture import files, parquet

GATEWAY = "gw-0"
LATER = "2999-01-01"


def mine(directory: Path) -> list[Path]:
    """List the finished files of one gateway below a directory, but not those in a spool."""
    found = [path for path in files.listed(directory) if files.gateway_of(path) == GATEWAY]
    return [path for path in found if "upload" not in path.relative_to(directory).parts]


def rows(paths: Iterable[Path]) -> list[Any]:
    """Return the rows of files by run and number, each as often as it is there."""
    return sorted(row for path in paths for row in _rows(path))


def _rows(path: Path) -> list[Any]:
    with files.opened(path) as file:
        recorded = parquet.recorded(file.read(columns=parquet.rows_schema(file).names))
    columns = [
        recorded["boot"],
        recorded["cap_seq"],
        recorded["ts_ns"],
        pc.fill_null(recorded["payload"], b""),
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
