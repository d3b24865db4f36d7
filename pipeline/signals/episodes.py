"""Work that finds episodes of signals in batches: gaps, and runs of values out of range. Pure, with Arrow.

A batch is only a part of a signal, so each block also has a row of its own (`SEEN`), by which
`pipeline.analysis.signals.episodes` puts the parts together.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.signals.blocks import KEYS, Block
from pipeline.signals.work import Column, Work, outside, schema

Array = npt.NDArray[Any]

SEEN: Final = "seen"
GAP: Final = "gap"
OUTSIDE: Final = "outside"
EPISODES: Final = {
    **dict.fromkeys(("kind", *KEYS), "STRING"),
    **dict.fromkeys(("start_ns", "end_ns", "rows", "is_first", "is_last"), "BIGINT"),
    "min": "DOUBLE",
    "max": "DOUBLE",
}
"""A run out of range `is_first` if its block begins with it, and `is_last` if it ends with it: 0 or 1. A
block that was `seen` has in `is_first` whether it begins out of range."""


class Episodes(Work):
    """A row for each block, each pause of more than `gap_ms` in it, and each run of values out of range."""

    columns = EPISODES

    def __init__(self, gap_ms: float) -> None:
        self.gap_ns = round(gap_ms * 1e6)

    def __call__(self, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
        rows = [row for block in blocks for row in self._rows(block)]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema(EPISODES))

    def _rows(self, block: Block) -> Iterator[dict[str, Any]]:
        keys = dict(zip(KEYS, block.keys, strict=True))
        column = Column.of(block)
        is_outside = outside(column.numbers, block.low, block.high)
        yield {**keys, **_seen(column.ts_ns, is_outside)}
        for at in np.flatnonzero(np.diff(column.ts_ns) > self.gap_ns):
            yield {**keys, **_row(GAP, column.ts_ns[at], column.ts_ns[at + 1], 0)}
        for start, end in _runs(is_outside):
            yield {**keys, **_run(column, start, end)}


def _row(kind: str, start: int, end: int, rows: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "start_ns": int(start),
        "end_ns": int(end),
        "rows": rows,
        "is_first": 0,
        "is_last": 0,
    }


def _seen(times: Array, is_outside: Array) -> dict[str, Any]:
    return {**_row(SEEN, times[0], times[-1], len(times)), "is_first": int(is_outside[0])}


def _runs(is_it: Array) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of true ones."""
    edges = np.diff(np.concatenate([[False], is_it, [False]]).astype(np.int8))
    yield from zip(
        np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True
    )


def _run(column: Column, start: int, end: int) -> dict[str, Any]:
    some = column.numbers[start : end + 1]
    return {
        **_row(OUTSIDE, column.ts_ns[start], column.ts_ns[end], len(some)),
        "is_first": int(start == 0), "is_last": int(end == len(column.numbers) - 1),
        "min": float(some.min()), "max": float(some.max()),
    }  # fmt: skip
