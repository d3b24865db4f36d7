"""Tables of signals: Parquet files by day and gateway, which tasks write and put into a store.

Long: a row for each value, series by series. Wide: a table for each message, with a column for each of its
signals. Files have the names of the pieces that they were made of, so a task that is repeated replaces them.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from bus.machine.scratch import Scratch
from capture.files import day_of
from capture.schema import DATE, GATEWAY
from capture.stores import store_of
from pipeline.signals.blocks import KEYS, Block
from pipeline.signals.work import SUMS, Sums, Work, schema, worth

LONG_FILE: Final = pa.schema(
    [
        ("ts_ns", pa.int64()), *((name, pa.string()) for name in ("bus", "pattern", "signal")),
        ("value", pa.float64()), ("text", pa.string()), ("unit", pa.string()),
    ]
)  # fmt: skip
_CODED: Final = pa.dictionary(pa.int32(), pa.string())
_NAMED: Final = ("bus", "pattern", "signal", "unit")
_OTHERS: Final = frozenset({"ts_ns", "bus", "pattern", DATE, GATEWAY})
"""The columns of a wide table that are no signals; names of columns are often read without their case."""
_DAY_NS: Final = 86_400 * 10**9


Array = npt.NDArray[Any]


class Part(NamedTuple):
    """Rows of one file: its place below the table, and its columns."""

    place: str
    table: pa.Table


def by_day(block: Block) -> Iterator[tuple[str, Block]]:
    """Divide a block by days, in UTC."""
    days = block.ts_ns // _DAY_NS
    first, last = int(days.min()), int(days.max())
    if first == last:
        yield day_of(first * _DAY_NS), block
        return
    for day in np.unique(days).tolist():
        yield day_of(day * _DAY_NS), taken(block, np.flatnonzero(days == day))


def taken(block: Block, rows: Any) -> Block:
    """Return some rows of a block."""
    at = pa.array(rows)
    numbers, texts = (None if one is None else one.take(at) for one in (block.numbers, block.texts))
    return block._replace(ts_ns=block.ts_ns[rows], numbers=numbers, texts=texts, rows=block.rows[rows])


def long_table(blocks: Sequence[Block]) -> pa.Table:
    """Return the rows of blocks, series by series; names are written as dictionaries."""
    counts = [len(block.ts_ns) for block in blocks]
    codes = np.repeat(np.arange(len(blocks), dtype=np.int32), counts)
    numbers, texts = zip(*map(worth, blocks), strict=True)
    keys = dict(zip(KEYS, zip(*(block.keys for block in blocks), strict=True), strict=True))
    columns = {name: _named(codes, keys[name]) for name in _NAMED}
    columns["ts_ns"] = pa.array(np.concatenate([block.ts_ns for block in blocks]))
    columns |= {"value": pa.concat_arrays(numbers), "text": pa.concat_arrays(texts)}
    return pa.table([columns[name] for name in LONG_FILE.names], schema=_long_schema())


def _long_schema() -> pa.Schema:
    return pa.schema([(field.name, _CODED if field.name in _NAMED else field.type) for field in LONG_FILE])


def _named(codes: Any, names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string()))


def wide_tables(blocks: Sequence[Block]) -> Iterator[tuple[str, pa.Table]]:
    """Yield a table for each message: its last part of the pattern that is no source, and its rows.

    A row has the values of one moment; or of one message, if a signal had several values then. A signal with
    texts has a second column `NAME_text`.
    """
    groups = dict[str, dict[tuple[str, str], list[Block]]]()
    for block in blocks:
        groups.setdefault(message_of(block), {}).setdefault((block.bus, block.pattern), []).append(block)
    for message, sides in groups.items():
        tables = [_wide(bus, pattern, some) for (bus, pattern), some in sides.items()]
        yield message, pa.concat_tables(tables, promote_options="default")


def message_of(block: Block) -> str:
    """Return the name of the table that a block goes to: its pattern, as one word that a path may have."""
    parts = [part for part in block.pattern.split("/") if part]
    names = [part for part in parts if not part.isdigit()] or parts or [block.signal]
    return "".join(char if char.isalnum() or char in "_-." else "_" for char in names[-1]).lstrip("._") or "_"


def _wide(bus: str, pattern: str, blocks: Sequence[Block]) -> pa.Table:
    signals = dict[str, list[Block]]()  # of one name, with several units
    for block in blocks:
        signals.setdefault(block.signal, []).append(block)
    lines, times = _lines(list(signals.values()))
    count = len(times)
    columns: dict[str, pa.Array] = {
        "ts_ns": pa.array(times),
        "bus": _named(np.zeros(count, np.int32), [bus]),
        "pattern": _named(np.zeros(count, np.int32), [pattern]),
    }
    for (signal, some), at in zip(signals.items(), lines, strict=True):
        if any(block.numbers is not None for block in some):
            numbers = pa.concat_arrays([worth(block)[0] for block in some])
            columns[_free(signal, columns)] = _placed(numbers, at, count)
        if any(block.texts is not None for block in some):
            texts = pa.concat_arrays([worth(block)[1] for block in some])
            columns[_free(f"{signal}_text", columns)] = _placed(texts, at, count)
    return pa.table(columns)


def _lines(signals: Sequence[Sequence[Block]]) -> tuple[list[Array], Array]:
    """Return the line of each value of each signal, and the times of the lines: one for each time; or for
    each message, where a signal has several values at a time."""
    times, moments = np.unique(_joined(signals, "ts_ns"), return_inverse=True)
    rows = _joined(signals, "rows")
    ends = np.cumsum([sum(len(block.ts_ns) for block in some) for some in signals])[:-1]
    is_shared = np.zeros(len(times), bool)
    for some in np.split(moments, ends):
        is_shared |= np.bincount(some, minlength=len(times)) > 1
    if is_shared.any():
        keys = moments * (int(rows.max()) + 2) + np.where(is_shared[moments], rows + 1, 0)
        _, firsts, lines = np.unique(keys, return_index=True, return_inverse=True)
        return np.split(lines, ends), times[moments[firsts]]
    return np.split(moments, ends), times


def _joined(signals: Sequence[Sequence[Block]], name: Literal["ts_ns", "rows"]) -> Array:
    return np.concatenate([block._asdict()[name] for some in signals for block in some])


def _placed(values: pa.Array, lines: Array, count: int) -> pa.Array:
    """Return values on their lines, null where there is none."""
    is_known = values.is_valid().to_numpy(zero_copy_only=False)
    at = np.full(count, -1, np.int64)
    at[lines[is_known]] = np.flatnonzero(is_known)
    return values.take(pa.array(at, mask=at < 0))


def _free(name: str, taken: Container[str]) -> str:
    """Return a name for a column: with `_` behind it, if the table has another column of that name."""
    while name in taken or name.lower() in _OTHERS:
        name += "_"
    return name


class Files(Work):
    """Work that writes the blocks of each batch to a table at `output`, and returns their sums.

    `run` is in the names of the files: those of other runs are no part of the table.
    """

    columns = SUMS

    def __init__(self, output: str, run: str, is_wide: bool, gap_ms: float) -> None:
        self.output, self.run, self.is_wide, self.sums = output, run, is_wide, Sums(gap_ms)
        self.piece, self.batch = 0, 0

    def begin(self, piece: int) -> None:
        self.piece, self.batch = piece, 0

    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        days = dict[tuple[str, str], list[Block]]()
        for block in blocks:
            for day, part in by_day(block):
                days.setdefault((day, block.gateway), []).append(part)
        for (day, gateway), some in days.items():
            name = f"{self.run}-{self.piece:06d}-{self.batch:04d}.parquet"
            self.batch += 1
            place = f"{DATE}={day}/{GATEWAY}={gateway}/{name}"
            for path, table in self._tables(some, place):
                self._put(table, path)
            rows = [self.sums.row(block, name) for block in some]
            yield pa.RecordBatch.from_pylist(rows, schema=schema(SUMS))

    def _tables(self, blocks: Sequence[Block], place: str) -> Iterator[tuple[str, pa.Table]]:
        if not self.is_wide:
            yield place, long_table(blocks)
            return
        for message, table in wide_tables(blocks):
            yield f"{message}/{place}", table

    def _put(self, table: pa.Table, name: str) -> None:
        with Scratch("table-") as aside:
            path = Path(aside, "part.parquet")
            with ParquetWriter(
                path, table.schema, compression="zstd", compression_level=1, store_schema=False,
                use_dictionary=[one for one in table.schema.names if one not in ("ts_ns", "value")],
                column_encoding={"ts_ns": "DELTA_BINARY_PACKED"}, write_page_checksum=True,
            ) as writer:  # fmt: skip
                writer.write_table(table)
            store_of(self.output).put(path, name)
