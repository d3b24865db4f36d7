"""Work on blocks, for each batch of rows: long rows, sums by signal, and windows of time. Pure, with Arrow.

A batch of each kind of work has the columns of its schema, which Spark has as DDL.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.signals.blocks import KEYS, Block

Array = npt.NDArray[Any]

_ROWS: Final = 1 << 16
_TYPES: Final = {"BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}
_KEYED: Final = dict.fromkeys(KEYS, "STRING")
_WORTH: Final = {"value": "DOUBLE", "text": "STRING"}
LONG: Final = {"ts_ns": "BIGINT", **_KEYED, **_WORTH}
SUMS: Final = {
    **_KEYED,
    **dict.fromkeys(("rows", "numbers", "nans"), "BIGINT"),
    **dict.fromkeys(("min", "max", "mean", "m2"), "DOUBLE"),
    **dict.fromkeys(("first_ns", "last_ns", "gaps", "longest_ns", "longest_from_ns", "outside"), "BIGINT"),
    "last": "DOUBLE",
    "last_text": "STRING",
    "file": "STRING",
}
BINS: Final = {
    **_KEYED, "start_ns": "BIGINT", "rows": "BIGINT", "numbers": "BIGINT",
    **dict.fromkeys(("sum", "min", "max"), "DOUBLE"),
    "last_ns": "BIGINT", "last": "DOUBLE", "last_text": "STRING",
}  # fmt: skip


class Work(ABC):
    """Work on the blocks of a batch. Its result has the columns of `columns`: their types by name."""

    columns: ClassVar[dict[str, str]]

    def begin(self, piece: int) -> None:
        """Take note that the batches of a piece come next."""
        del piece  # of which only files have the number

    @abstractmethod
    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        """Yield the results of the blocks of a batch."""


def ddl(columns: dict[str, str]) -> str:
    """Return columns as Spark takes them."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def schema(columns: dict[str, str]) -> pa.Schema:
    """Return columns as Arrow takes them."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])


class Long(Work):
    """A row for each value."""

    columns = LONG

    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        for some in _gathered(blocks):
            counts = [len(block.ts_ns) for block in some]
            times = pa.array(np.concatenate([block.ts_ns for block in some]))
            columns = _joined([worth(block) for block in some])
            yield pa.RecordBatch.from_arrays([times, *_keys(some, counts), *columns], schema=schema(LONG))


def _gathered(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield blocks together, as many as have `_ROWS` rows: a batch for each of 10,000 signals, of a few rows,
    costs more than the rows."""
    held, count = list[Block](), 0
    for block in blocks:
        held.append(block)
        count += len(block.ts_ns)
        if count >= _ROWS:
            yield held
            held, count = [], 0
    if held:
        yield held


def _keys(blocks: Sequence[Block], counts: Sequence[int]) -> list[pa.Array]:
    """Return the columns of the keys of blocks, which have so many rows each."""
    at = pa.array(np.repeat(np.arange(len(blocks), dtype=np.int32), counts))
    return [
        pa.array(texts, pa.string()).take(at) for texts in zip(*(block.keys for block in blocks), strict=True)
    ]


def _joined(parts: Iterable[Sequence[pa.Array]]) -> list[pa.Array]:
    """Return columns one below the other."""
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


def worth(block: Block) -> tuple[pa.Array, pa.Array]:
    """Return the numbers and the texts of a block."""
    count = len(block.ts_ns)
    numbers = pa.nulls(count, pa.float64()) if block.numbers is None else block.numbers
    return numbers, pa.nulls(count, pa.string()) if block.texts is None else block.texts


class Column(NamedTuple):
    """The values of a block in the order of time. `numbers` are NaN where there is none."""

    ts_ns: Array
    numbers: Array
    texts: pa.Array | None

    @classmethod
    def of(cls, block: Block) -> "Column":
        times = block.ts_ns
        if block.numbers is None:
            numbers = np.full(len(times), np.nan)
        else:
            numbers = block.numbers.to_numpy(zero_copy_only=False)
        if len(times) < 2 or (times[1:] >= times[:-1]).all():
            return cls(times, numbers, block.texts)
        order = np.argsort(times, kind="stable")
        texts = None if block.texts is None else block.texts.take(pa.array(order))
        return cls(times[order], numbers[order], texts)

    def text(self, place: int) -> str | None:
        """Return the text of a row, None if it has none."""
        found: str | None = None if self.texts is None else self.texts[place].as_py()
        return found


def _number(value: Any) -> float | None:
    """Return a number, None for the NaN that stands for none."""
    return None if value != value else float(value)


class Sums(Work):
    """A row for each signal of a batch. A pause of more than `gap_ms` between values is a gap."""

    columns = SUMS

    def __init__(self, gap_ms: float) -> None:
        self.gap_ns = round(gap_ms * 1e6)

    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        rows = [self.row(block) for block in blocks]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema(SUMS))

    def row(self, block: Block, file: str | None = None) -> dict[str, Any]:
        """Return the row of a block."""
        column = Column.of(block)
        numbers = column.numbers
        is_number = ~np.isnan(numbers)
        some = numbers if is_number.all() else numbers[is_number]
        keys = dict(zip(KEYS, block.keys, strict=True))
        counted = {"rows": len(numbers), "numbers": len(some), "nans": _nans(block)}
        last = {"last": _number(numbers[-1]), "last_text": column.text(-1), "file": file}
        return {**keys, **counted, **_moments(some), **self._pauses(column.ts_ns), **last,
                "outside": _outside(block, some)}  # fmt: skip

    def _pauses(self, times: Array) -> dict[str, int | None]:
        found: dict[str, int | None] = {"first_ns": int(times[0]), "last_ns": int(times[-1])}
        pauses = np.diff(times)
        if not len(pauses):
            return {**found, "gaps": 0, "longest_ns": None, "longest_from_ns": None}
        longest = int(pauses.argmax())
        return {**found, "gaps": int((pauses > self.gap_ns).sum()), "longest_ns": int(pauses[longest]),
                "longest_from_ns": int(times[longest])}  # fmt: skip


def _nans(block: Block) -> int:
    """Count the values that are NaN, and not missing."""
    if block.numbers is None:
        return 0
    numbers = block.numbers.to_numpy(zero_copy_only=False)
    return int(np.isnan(numbers).sum()) - int(block.numbers.null_count)


def _moments(numbers: Array) -> dict[str, float | None]:
    """Return least, greatest and mean, and the sum of squares of what differs from the mean."""
    if not len(numbers):
        return dict.fromkeys(("min", "max", "mean", "m2"))
    with np.errstate(all="ignore"):
        mean = float(numbers.mean())
        m2 = float(np.square(numbers - mean).sum())
    return {"min": float(numbers.min()), "max": float(numbers.max()), "mean": mean, "m2": m2}


def _outside(block: Block, numbers: Array) -> int | None:
    """Count the numbers outside of what a database says; None if it says nothing."""
    if block.low is None and block.high is None:
        return None
    return int(outside(numbers, block.low, block.high).sum())


def outside(numbers: Array, low: float | None, high: float | None) -> Array:
    """Return which numbers are below `low` or above `high`, where these are known; NaN is neither."""
    found = np.zeros(len(numbers), bool)
    if low is not None:
        found |= numbers < low
    if high is not None:
        found |= numbers > high
    return found


class Bins(Work):
    """A row for each signal and window of time in a batch; a window is `width_ns` long."""

    columns = BINS

    def __init__(self, width_ns: int) -> None:
        self.width_ns = width_ns

    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        for some in _gathered(blocks):
            parts = [self._windows(block) for block in some]
            keys = _keys(some, [len(part[0]) for part in parts])
            yield pa.RecordBatch.from_arrays([*keys, *_joined(parts)], schema=schema(BINS))

    def _windows(self, block: Block) -> list[pa.Array]:
        """Return the columns of the windows of a block, but for its keys."""
        column = Column.of(block)
        bins = column.ts_ns // self.width_ns
        firsts = np.flatnonzero(np.concatenate([[True], bins[1:] != bins[:-1]]))
        lasts = np.append(firsts[1:], len(bins)) - 1
        is_number = ~np.isnan(column.numbers)
        counts = np.add.reduceat(is_number.astype(np.int64), firsts)
        zeros = np.where(is_number, column.numbers, 0.0)
        with np.errstate(all="ignore"):
            least = np.fmin.reduceat(column.numbers, firsts)
            most = np.fmax.reduceat(column.numbers, firsts)
            sums = np.add.reduceat(zeros, firsts)
        none = counts == 0
        texts = (
            pa.nulls(len(firsts), pa.string()) if column.texts is None else column.texts.take(pa.array(lasts))
        )
        last = column.numbers[lasts]
        return [
            pa.array(bins[firsts] * self.width_ns),
            pa.array(lasts - firsts + 1),
            pa.array(counts),
            pa.array(sums, mask=none),
            pa.array(least, mask=none),
            pa.array(most, mask=none),
            pa.array(column.ts_ns[lasts]),
            pa.array(last, mask=np.isnan(last)),
            texts,
        ]
