"""Compaction: the many small files of closed days become a few large ones. Needs pyarrow.

At no moment is a row missing or doubled for who reads the directory, however the program ends. What a day of
a gateway will be is made in a directory aside, with links to the files that stay. Then the two directories
change places, in one step of the kernel. The directory aside has one name, by which a later run finds what a
killed one left: so a day is locked, and a second compaction waits.
"""

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from capture import parquet
from capture.files import (
    FILE_SUFFIX,
    JOURNAL_SUFFIX,
    CaptureError,
    boot_of,
    gateway_of,
    journal_directory,
    listed,
    opened,
    topology_of,
)
from capture.locks import alone, merging
from capture.schema import GATEWAY

FILE_BYTES: Final = 128 << 20
MARK: Final = ".compacted"
"""The file that names what a directory stands for, while that is made aside, and in its place until the old
one is gone."""

_AT_FDCWD, _EXCHANGE = -100, 2


class Day(NamedTuple):
    """A day of a gateway: its directory, and how many files of how many bytes are merged, and become."""

    directory: Path
    files: int
    size_bytes: int
    made: int
    made_bytes: int


def compact(
    days: Path, before: str, file_bytes: int = FILE_BYTES, on_wait: Callable[[str], None] = lambda _: None
) -> Iterator[Day]:
    """Compact the days before a day (`YYYY-MM-DD`, UTC), by gateway. Yield those that changed.

    `on_wait` is called with whose end is awaited: a job that reads, or another compaction. Raises
    `CaptureError`.
    """
    for directory in sorted({path.parent for path in listed(days)} | set(_interrupted(days))):
        try:
            with merging(directory.parent, lambda: on_wait("another compaction")):
                finish(directory)
                is_closed = directory.parent.name.partition("=")[2] < before
                day = _compacted(days, directory, file_bytes, on_wait) if is_closed else None
        except OSError as error:
            if not directory.parent.exists():
                continue  # its recorder has deleted the day meanwhile
            raise CaptureError(f"{directory}: {error.strerror or error}") from error
        if day is not None:
            yield day


def _interrupted(days: Path) -> Iterator[Path]:
    """Find the directories of which an earlier run left something."""
    for path in days.glob(f"*/.{GATEWAY}=*.compact"):
        yield path.with_name(path.name.removeprefix(".").removesuffix(".compact"))


def aside_of(directory: Path) -> Path:
    """Return the directory beside a day in which its files are merged."""
    return directory.with_name(f".{directory.name}.compact")


def finish(directory: Path) -> None:
    """End what an earlier run began: clear away what is not in place yet, or what has been replaced."""
    aside, mark = aside_of(directory), directory / MARK
    if (aside / MARK).exists() or not mark.exists():
        shutil.rmtree(aside, ignore_errors=True)  # it never came into place
        return
    if aside.exists():
        replaced = set(json.loads(mark.read_text()))
        for path in aside.glob(f"[!.]*{FILE_SUFFIX}"):
            if path.name not in replaced:
                path.rename(directory / path.name)  # a recorder finished it meanwhile
        shutil.rmtree(aside)
    mark.unlink()
    parquet.sync(directory)


def _compacted(days: Path, directory: Path, file_bytes: int, on_wait: Callable[[str], None]) -> Day | None:
    paths = listed(directory)
    fixed = _unfinished(days, gateway_of(paths[0])) if paths else set()
    groups = list(groups_of([Source(path, _topology(path)) for path in paths], fixed, file_bytes))
    several = [group for group in groups if len(group) > 1]
    if not several:
        return None
    sizes = [path.stat().st_size for group in several for path in group]
    aside = aside_of(directory)
    try:
        made = _make(aside, groups)
        with alone(days, lambda: on_wait("a job that reads")):
            exchange(directory, aside)
            finish(directory)
    except BaseException:
        finish(directory)
        raise
    return Day(directory, len(sizes), sum(sizes), len(made), sum(made))


def _make(aside: Path, groups: list[list[Path]]) -> list[int]:
    """Make what a directory will be. Returns the sizes of the new files, in bytes."""
    aside.mkdir()
    (aside / MARK).write_text(json.dumps([path.name for group in groups for path in group]))
    for (path,) in (group for group in groups if len(group) == 1):
        os.link(path, aside / path.name)
    made = [merged(group, aside / group[0].name) for group in groups if len(group) > 1]
    parquet.sync(aside)
    return made


def _unfinished(days: Path, gateway: str) -> set[str]:
    """Return the names of files whose journals are still there: a recorder may finish these again."""
    journals = journal_directory(days.parent, gateway).glob(f"*{JOURNAL_SUFFIX}")
    return {path.stem for path in journals}


class Source(NamedTuple):
    """A file that may be merged, and the topology that it was recorded under, if it has one."""

    path: Path
    topology: bytes | None


def groups_of(sources: Iterable[Source], fixed: set[str], file_bytes: int) -> Iterator[list[Path]]:
    """Divide files into groups that become one each: of one run and one topology, and not too large. Those
    with a `fixed` name (without suffix) stay alone."""

    def sort(source: Source) -> tuple[str, bytes | None, str]:
        path = source.path
        return boot_of(path), source.topology, path.name if path.stem in fixed else ""

    for _, alike in groupby(sources, sort):
        group, size = list[Path](), 0
        for path, _ in alike:
            size += path.stat().st_size
            if group and size > file_bytes:
                yield group
                group, size = [], path.stat().st_size
            group.append(path)
        yield group


def _topology(path: Path) -> bytes | None:
    with opened(path) as file:
        return topology_of(file)


def merged(group: list[Path], target: Path) -> int:
    """Write the rows of files, in their order, to one. Returns its size in bytes. Raises `CaptureError`."""
    with opened(group[0]) as file:
        schema = parquet.rows_schema(file)
    partial = target.with_name(f".{target.name}.tmp")
    counted = _Counted()
    parquet.write(partial, schema, counted.batches(group, schema))
    with opened(partial) as file:
        rows = file.metadata.num_rows - file.metadata.row_group(file.metadata.num_row_groups - 1).num_rows
    if rows != counted.rows:
        raise CaptureError(
            f"{partial}: {rows} rows were written of {counted.rows}, so the day stays as it was; try again"
        )
    newest = max(path.stat().st_mtime for path in group)
    os.utime(partial, (newest, newest))  # retention goes by the age of files
    partial.rename(target)
    return target.stat().st_size


class _Counted:
    """A reader of the recorded rows of files, which counts them."""

    def __init__(self) -> None:
        self.rows = 0

    def batches(self, group: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for path in group:
            with opened(path) as file:
                for number in range(file.metadata.num_row_groups):
                    table = file.read_row_group(number, columns=schema.names)
                    recorded = parquet.recorded(table)
                    self.rows += len(recorded)
                    yield from recorded.cast(schema).to_batches()


def exchange(one: Path, other: Path) -> None:
    """Let two directories change places at once. Raises `OSError`, also where the file system cannot."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        words = "this file system cannot exchange directories" if number == errno.EINVAL else None
        raise OSError(number, words or os.strerror(number), str(one))
