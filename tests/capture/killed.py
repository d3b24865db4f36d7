"""Programs that are killed while they change a capture or a table (tests.helpers.steps)."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from capture import compact, parquet
from capture.stores import store_of
from capture.tables import PlainTable, Table, load
from tests.helpers.steps import told

OWNERS: Final[dict[str, Any]] = {
    "os": os,
    "shutil": shutil,
    "compact": compact,
    "parquet": parquet,
    "Path": Path,
}
LATER: Final = "2999-01-01"


def table_of(kind: str, where: Path) -> Table:
    """Make a table at a place."""
    if kind == "plain":
        return PlainTable(store_of(str(where)))
    from capture.delta import DeltaTable

    return DeltaTable(store_of(str(where)), str(where))


def loading(kind: str, days: str, where: str, step: Callable[[], None]) -> None:
    """Load a capture into a table, with a step before and after each file is stored."""
    table = table_of(kind, Path(where))
    told(table.store, "put", step)
    list(load(Path(days), table))


def compacting(name: str, days: str, step: Callable[[], None]) -> None:
    """Compact a capture, with a step before and after each call of a function of `OWNERS`."""
    owner, _, function = name.partition(".")
    told(OWNERS[owner], function, step)
    list(compact.compact(Path(days), LATER))
