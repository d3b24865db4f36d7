"""Journals as readers see them: rows that are not in a capture file yet. Needs pyarrow.

A journal is an Arrow IPC stream (lz4) of whole batches. It grows while it is read, and may have a torn tail.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from capture.batches import BAD, batches_of
from capture.ranges import Ranges, joined


class Placed(NamedTuple):
    """A batch of a journal: where it begins, in bytes, and its rows, from `first` to `last` of `boot`."""

    offset: int
    boot: int
    first: int
    last: int


class Index:
    """The batches of a journal, found as they are written: `look` reads only what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.batches: list[Placed] = []
        self._end = 0
        self._schema: pa.Schema | None = None

    @property
    def ranges(self) -> Ranges:
        return joined((one.boot, one.first, one.last) for one in self.batches)

    def look(self) -> None:
        """Find what was added, up to a batch that is damaged. Raises `OSError`."""
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._end:  # begun anew: it had no whole batch
                self.batches, self._end = [], 0
            file.seek(self._end)
            data = pa.BufferReader(file.read())
        begin, at = self._end, 0
        with suppress(*BAD):
            while (message := _message(data)) is not None:
                self._note(message, begin + at)
                at = data.tell()
        self._end = begin + at

    def _note(self, message: pa.Message, offset: int) -> None:
        """Note a batch, or the schema of all. Raises what is in `BAD`."""
        if message.type == "schema":
            self._schema = pa.ipc.read_schema(message)
            return
        if self._schema is None:
            raise ValueError("rows before their schema")
        batch = pa.ipc.read_record_batch(message, self._schema)
        numbers = batch["cap_seq"]
        placed = batch["boot"][0].as_py(), numbers[0].as_py(), numbers[-1].as_py()
        if None in placed:
            raise ValueError("a row without a number")
        self.batches.append(Placed(offset, *placed))

    def offset_of(self, number: int) -> int:
        """Return where the batch begins that has a row."""
        return next((one.offset for one in self.batches if number <= one.last), self._end)


def times_of(path: Path) -> tuple[int, int] | None:
    """Return the times of the first and the last row, in ns; None if there is none. Raises `OSError`."""
    found = [pc.min_max(batch["ts_ns"]).as_py() for batch, _ in batches_of(path) if len(batch)]
    if not found:
        return None
    return min(one["min"] for one in found), max(one["max"] for one in found)


def rows_from(path: Path, offset: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Read the rows `first` to `last` of a journal whose batch with the first begins at `offset`.

    Raises `FileNotFoundError` if it has become a capture file.
    """
    with path.open("rb") as file:
        source = pa.PythonFile(file, mode="r")
        head = _message(source)
        if head is None:
            return
        schema = pa.ipc.read_schema(head)
        file.seek(offset)
        while (message := _message(source)) is not None:
            if message.type == "schema":
                continue
            batch = pa.ipc.read_record_batch(message, schema)
            if batch["cap_seq"][0].as_py() > last:
                return
            yield between(batch, first, last)


def between(rows: pa.RecordBatch, first: int, last: int) -> pa.RecordBatch:
    """Return the rows with these numbers."""
    numbers = rows["cap_seq"]
    return rows.filter(pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last)))


def _message(source: pa.NativeFile) -> pa.Message | None:
    """Read a whole message; None at the end, or if the rest is not written yet."""
    try:
        return pa.ipc.read_message(source)
    except BAD:
        return None
