"""Tables: the files of captures from anywhere, put together by day and gateway, each row once. Needs pyarrow.

A plain table is a directory, or a prefix of an object store, that is laid out as a capture is. A Delta table
is the same with a Delta log, which says what files it has.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from bus.machine.scratch import Scratch
from bus.names import lines_of, texts
from capture import names, parquet, ranges
from capture.files import FILE_SUFFIX, NAMES, CaptureError, finished, name_of, opened
from capture.ranges import Ranges
from capture.stores import Store


class Table(Protocol):
    """A table that files are added to. Every method raises `CaptureError`."""

    store: Store

    def files(self, place: str) -> dict[str, int]:
        """Return the files of a day and a gateway: their names within the table, and their sizes in bytes."""

    def add(self, place: str, paths: Sequence[Path]) -> None:
        """Add files, all of them or, if it fails, some; none of them in part."""


class Loaded(NamedTuple):
    """The result of loading the files of one day and gateway: how many were added, how many of them with only
    those rows that the table did not have; and those that could not be read, with the reason."""

    place: str
    files: int
    added: int
    parts: int
    bad: list[str]


class PlainTable:
    """A table without a log: what is in its directories is in it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def files(self, place: str) -> dict[str, int]:
        found = self.store.sizes(place)
        return {f"{place}/{name}": size for name, size in found.items() if name.endswith(FILE_SUFFIX)}

    def add(self, place: str, paths: Sequence[Path]) -> None:
        for path in paths:
            self.store.put(path, f"{place}/{path.name}")


def load(days: Path, table: Table) -> Iterator[Loaded]:
    """Add to a table what a capture (its directory of days) has and the table has not.

    Yield the days and gateways that had files to look into. It may be killed and repeated at any moment, and
    both sides may be compacted in between: a row goes by its gateway, run and number. Raises `CaptureError`.
    """
    for directory, paths in groupby(finished(days), lambda path: path.absolute().parent):
        place = "/".join(directory.parts[-2:])
        there = table.files(place)
        new = [path for path in paths if there.get(f"{place}/{path.name}") != path.stat().st_size]
        if new:
            yield _load(table, place, there, new)
    add_names(names.listed(days), table.store)


def _load(table: Table, place: str, there: dict[str, int], new: list[Path]) -> Loaded:
    held = ranges.together(_ranges_of(table.store, name) for name in there)
    added, parts, bad = list[Path](), 0, list[str]()
    with Scratch() as aside:
        for path in new:
            try:
                found, mine = wanted(path, held, Path(aside))
                if found is path:
                    _read_through(path)
            except CaptureError as error:
                bad.append(str(error))
                continue
            if found is not None:
                parts += found is not path
                added.append(found)
                held = ranges.together((held, mine))
        if added:
            table.add(place, added)
    return Loaded(place, len(new), len(added), parts, bad)


def _ranges_of(store: Store, name: str) -> Ranges:
    try:
        with store.opened(name) as file:
            return ranges.of(ParquetFile(file))
    except pa.ArrowException as error:
        raise CaptureError(f"{name}: unreadable ({str(error).splitlines()[0][:120]})") from error
    except CaptureError as error:
        raise CaptureError(f"{name}: {error}") from error


def wanted(path: Path, held: Ranges, aside: Path) -> tuple[Path | None, Ranges]:
    """Return a file with those rows of `path` that are not held: itself, a part of it that is made in
    `aside`, or None for no row; and which rows `path` has. Raises `CaptureError`.
    """
    with opened(path) as file:
        mine = ranges.of(file)
        if ranges.covers(held, mine):
            return None, mine
        return _part(file, held, aside) if ranges.overlap(held, mine) else path, mine


def _read_through(path: Path) -> None:
    """Raise `CaptureError` if a file is damaged, so that it is not added."""
    with opened(path) as file:
        for group in range(file.metadata.num_row_groups):
            file.read_row_group(group)


def _part(file: ParquetFile, held: Ranges, aside: Path) -> Path | None:
    schema = parquet.rows_schema(file)
    recorded = parquet.recorded(file.read(columns=schema.names))
    rest = ranges.outside(recorded, held).cast(schema)
    if not len(rest):
        return None
    first = rest.slice(0, 1).to_pylist()[0]
    path = aside / f"{name_of(first['boot'], first['cap_seq'])}{FILE_SUFFIX}"
    parquet.write(path, schema, rest.to_batches())
    return path


def add_names(paths: Iterable[Path], store: Store) -> None:
    """Add files of names beside a capture to those beside a table's files. Raises `CaptureError`."""
    there = store.sizes(NAMES)
    for path in paths:
        old = _lines(store, f"{NAMES}/{path.name}") if path.name in there else []
        new = [line for line in lines_of(texts(names.read(path))) if line not in set(old)]
        if new:
            with Scratch() as aside:
                joined = Path(aside, path.name)
                joined.write_text("".join(f"{line}\n" for line in [*old, *new]), encoding="utf-8")
                store.put(joined, f"{NAMES}/{path.name}")


def _lines(store: Store, name: str) -> list[str]:
    with store.opened(name) as file:
        return bytes(file.read()).decode(errors="replace").splitlines()
