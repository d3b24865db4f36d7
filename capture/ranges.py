"""The rows of a file, by number: the runs of recorders, and for each the intervals of its numbers.

A row is named by its gateway, the run of its recorder (`boot`) and its number (`cap_seq`). The summary of a
file (`capture.contents`) says from where to where the numbers of each sort of rows go, and so does a file
that was merged of others, by us or by somebody else; only one with holes is read for that.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from capture.files import CaptureError, opened
from capture.schema import CONTENTS, Kind

Interval = tuple[int, int]
Ranges = dict[int, list[Interval]]
"""The intervals (first, last) of each run, joined and in order."""

_COLUMNS: Final = ("kind", "boot", "cap_seq")


def of(file: ParquetFile) -> Ranges:
    """Return the rows of a file. Raises `CaptureError` if it does not say them."""
    names = file.schema_arrow.names
    if any(name not in names for name in _COLUMNS):
        raise CaptureError("a Parquet file, but not of a capture")
    if CONTENTS not in names:
        return _checked(file, joined(_of_statistics(file, names)), file.metadata.num_rows)
    groups = [n for n in range(file.metadata.num_row_groups) if _has_summary(file, n, names)]
    table = file.read_row_groups(groups, columns=[*_COLUMNS, CONTENTS])
    summary = table.filter(pc.equal(table["kind"], Kind.CONTENTS.value))
    lasts = pc.struct_field(summary[CONTENTS], "last_cap_seq").to_pylist()
    found = joined(zip(summary["boot"].to_pylist(), summary["cap_seq"].to_pylist(), lasts, strict=True))
    return _checked(file, found, file.metadata.num_rows - len(summary))


def of_path(path: Path) -> Ranges:
    """Return the rows of a capture file. Raises `CaptureError`."""
    with opened(path) as file:
        return of(file)


def entwined(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """Divide the files of one run, in the order of their names, into lists in which numbers go to and fro.

    Rows of several days in no order do so, as at midnight in a log of two adapters. Raises `CaptureError`.
    """
    some, until = list[Path](), -1
    for path in paths:
        ends = [end for its in of_path(path).values() for one in its for end in one]
        if some and min(ends, default=until + 1) > until:
            yield some
            some = []
        some.append(path)
        until = max([until, *ends])
    if some:
        yield some


def _checked(file: ParquetFile, found: Ranges, rows: int) -> Ranges:
    """Return the rows that were found, or look at each, if a file that was merged has holes between them."""
    if sum(last - first + 1 for some in found.values() for first, last in some) == rows:
        return found
    table = file.read(columns=list(_COLUMNS))
    every = table.filter(pc.not_equal(table["kind"], Kind.CONTENTS.value))
    numbers = every["cap_seq"].to_pylist()
    return joined(zip(every["boot"].to_pylist(), numbers, numbers, strict=True))


def _has_summary(file: ParquetFile, group: int, names: list[str]) -> bool:
    found = file.metadata.row_group(group).column(names.index("kind")).statistics
    return found is None or not found.has_min_max or found.max >= Kind.CONTENTS.value


def _of_statistics(file: ParquetFile, names: list[str]) -> Iterable[tuple[int, int, int]]:
    """Yield what a file of version 1 says, which has no summary, and rows of one run only."""
    for group in range(file.metadata.num_row_groups):
        boot, number = (
            file.metadata.row_group(group).column(names.index(name)).statistics
            for name in ("boot", "cap_seq")
        )
        if boot is None or number is None or boot.min != boot.max:
            raise CaptureError("a capture file without a summary that does not say which rows it has")
        yield boot.min, number.min, number.max


def joined(found: Iterable[tuple[int, int, int]]) -> Ranges:
    """Join intervals (run, first, last) that overlap or touch."""
    ranges: Ranges = defaultdict(list)
    for boot, first, last in sorted(found):
        mine = ranges[boot]
        if mine and first <= mine[-1][1] + 1:
            mine[-1] = mine[-1][0], max(mine[-1][1], last)
        else:
            mine.append((first, last))
    return dict(ranges)


def together(parts: Iterable[Ranges]) -> Ranges:
    """Return the rows of several files."""
    return joined((boot, *one) for part in parts for boot, some in part.items() for one in some)


def covers(held: Ranges, part: Ranges) -> bool:
    """Return whether all rows of `part` are in `held`."""
    return all(
        any(first <= one[0] and one[1] <= last for first, last in held.get(boot, ()))
        for boot, some in part.items()
        for one in some
    )


def overlap(held: Ranges, part: Ranges) -> bool:
    """Return whether rows of `part` may be in `held`."""
    return any(
        first <= one[1] and one[0] <= last
        for boot, some in part.items()
        for one in some
        for first, last in held.get(boot, ())
    )


def without(part: Ranges, held: Ranges) -> Ranges:
    """Return the rows of `part` that are not in `held`."""
    rest = {boot: _cut(some, held.get(boot, [])) for boot, some in part.items()}
    return {boot: some for boot, some in rest.items() if some}


def _cut(some: list[Interval], held: list[Interval]) -> list[Interval]:
    """Return what is in `some` and not in `held`: both are joined and in order, and are gone through once."""
    rest, at = list[Interval](), 0
    for first, last in some:
        while at < len(held) and held[at][1] < first:
            at += 1
        while at < len(held) and held[at][0] <= last:
            if first < held[at][0]:
                rest.append((first, held[at][0] - 1))
            first = held[at][1] + 1
            if first > last:
                break  # the next one may begin in what is held too
            at += 1
        if first <= last:
            rest.append((first, last))
    return rest


def first_of(part: Ranges, limit: int | None) -> Ranges:
    """Return the first rows, by run and number: at most `limit`, None for all."""
    if limit is None:
        return part
    found = list[tuple[int, int, int]]()
    for boot, some in sorted(part.items()):
        for first, last in some:
            if limit <= 0:
                break
            found.append((boot, first, min(last, first + limit - 1)))
            limit -= last - first + 1
    return joined(found)


def outside(table: pa.Table, held: Ranges) -> pa.Table:
    """Return the rows of a table that are not in `held`."""
    is_held = pa.array([False] * len(table))
    for boot, some in held.items():
        for first, last in some:
            within = pc.and_(pc.greater_equal(table["cap_seq"], first), pc.less_equal(table["cap_seq"], last))
            is_held = pc.or_(is_held, pc.and_(pc.equal(table["boot"], boot), within))
    return table.filter(pc.invert(is_held))
