"""The writing of tables of signals, in place of what a table had: long, wide or by windows, with a Delta log
if it is asked for.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pyarrow.parquet import ParquetFile

from capture.files import DELTA_LOG
from capture.schema import DATE, GATEWAY
from capture.stores import Store, store_of
from pipeline.cache import cached
from pipeline.errors import PipelineError
from pipeline.output.place import absolute
from pipeline.signals.pieces import Source, done
from pipeline.signals.table import Files
from pipeline.signals.wanted import Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUCCESS: Final = "_SUCCESS"
_CAPTURED: Final = re.compile(r"\d{20}-\d{15}\b")
_NAMED: Final = re.compile(r"\d+-\d{6}-\d{4}\.parquet")
_COLUMNS: Final = {"bus", "pattern"}
_NUMBER: Final = "cap_seq"


def check(output: str) -> None:
    """Raise `PipelineError` if there is anything but a table of ours at a place: it would be deleted."""
    store = store_of(output)
    names = list(store.below())
    other = next((name for name in names if not _is_ours(name)), None) or _foreign(store, names)
    if other:
        raise PipelineError(
            f"--output {output}: {other} is no part of a table of signals: give a new directory"
        )


def _is_ours(name: str) -> bool:
    parts = name.split("/")
    return DELTA_LOG in parts or parts[-1].startswith((_SUCCESS, f".{_SUCCESS}")) or is_of_table(name)


def is_of_table(name: str) -> bool:
    """Return whether a name below a table is that of a file with rows. Files of a capture lie likewise, but
    have other names (`capture.files.name_of`)."""
    *_, date, gateway, file = ("", "", *name.split("/"))
    is_placed = date.startswith(f"{DATE}=") and gateway.startswith(f"{GATEWAY}=")
    return is_placed and file.strip(".").endswith((".parquet", ".crc")) and not _CAPTURED.match(file)


def _foreign(store: Store, names: Iterable[str]) -> str | None:
    """Return the first file that is none of signals by its columns. Of each table, one that has not the name
    of a file of ours is opened: an engine has named it, or another program has rewritten it."""
    unknown = (name for name in names if is_of_table(name) and name.endswith(".parquet"))
    unknown = (name for name in unknown if not _NAMED.fullmatch(name.rpartition("/")[2]))
    for _, some in _by_table(unknown):
        with store.opened(some[0]) as stream, ParquetFile(stream) as file:
            if not {*file.schema_arrow.names} >= _COLUMNS or _NUMBER in file.schema_arrow.names:
                return some[0]
    return None


def write(
    source: Source, wanted: Wanted, output: str, is_wide: bool, has_log: bool, gap_ms: float,
    check_sums: "Callable[[DataFrame], None]" = lambda _: None,
) -> "DataFrame":  # fmt: skip
    """Write all values, and return the sums of batches. Old files are deleted when the new ones are there;
    these, if `check_sums` raises."""
    place = absolute(output)
    store, run = store_of(place), f"{time.time_ns():020d}"
    check(place)
    old = _rows_of(store)
    try:
        sums = cached(done(source, wanted, Files(place, run, is_wide, gap_ms)))
        sums.count()  # at this point they are written
        check_sums(sums)
    except BaseException:
        _delete(store, (name for name in _rows_of(store) if name.rpartition("/")[2].startswith(run)))
        raise
    _end(place, store, old, has_log)
    return sums


def write_windows(frame: "DataFrame", output: str, has_log: bool) -> None:
    """Write the windows of signals."""
    from pyspark.sql import functions as F

    place = absolute(output)
    store = store_of(place)
    check(place)
    old = _rows_of(store)
    day = F.to_date(F.timestamp_seconds(F.expr("start_ns div 1000000000")))
    frame.withColumn(DATE, day).write.mode("append").partitionBy(DATE, GATEWAY).parquet(place)
    _end(place, store, old, has_log)


def _rows_of(store: Store) -> list[str]:
    return [name for name in store.below() if is_of_table(name)]


def _end(place: str, store: Store, old: list[str], has_log: bool) -> None:
    """Make the new files those of the table."""
    if has_log:
        from pipeline.signals.logged import log

        new = {name for name in set(_rows_of(store)) - set(old) if name.endswith(".parquet")}
        for table, names in _by_table(sorted(new)):
            log(f"{place}/{table}".rstrip("/"), [name.removeprefix(f"{table}/") for name in names])
        return  # who reads the table goes on with the old files
    _delete(store, old)


def _by_table(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the tables that files are of, "" for the place itself, and the files of each."""
    found = dict[str, list[str]]()
    for name in names:
        found.setdefault("/".join(name.split("/")[:-3]), []).append(name)
    yield from found.items()


def _delete(store: Store, names: Iterable[str]) -> None:
    for name in names:
        store.delete(name)
