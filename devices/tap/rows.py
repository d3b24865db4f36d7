"""Turns records of the ring into rows of a capture: whole batches of frames at a time, by numpy and Arrow.

Needs pyarrow and numpy; only the tap's writer process imports it.
"""

import json
import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bus.errors import words_of
from bus.wire.batch import LENGTH, LENGTH_BYTES, equal_run
from capture import messages
from capture.messages import NO_MESSAGE, PAD, Flags, Ints
from capture.schema import COLUMNS, Kind, verdict_of
from devices.tap.ring import Record, RecordPlace, place_of

log = logging.getLogger("buscoupler.tap")

_SOON = 256  # after a run of so many the next look is at once: shorter ones in a row are mixed sizes too
_WALK = 256  # messages of mixed sizes between two such attempts
_KINDS = {
    "hub": pa.string(),
    "bus": pa.string(),
    "peer": pa.string(),
    "dir": pa.int16(),
    "verdict": pa.int16(),
    "reason": pa.string(),
}
_CAP_SEQ = next(number for number, column in enumerate(COLUMNS) if column.name == "cap_seq")


class Made(NamedTuple):
    """A batch of rows, and the number of the first record that is not in it."""

    batch: pa.RecordBatch
    next_number: int


class Rows:
    """Makes Arrow batches of `schema`. `boot` (ns) is the recorder's start, `cap_seq` the next row's number.

    Only frames that start with `pattern` become rows and get a number.
    """

    def __init__(self, schema: pa.Schema, boot: int, cap_seq: int = 0, pattern: Sequence[int] = ()) -> None:
        self.schema, self.boot, self.cap_seq, self.pattern = schema, boot, cap_seq, pattern

    def of(self, records: Sequence[Record]) -> list[Made]:
        """Return the rows of `records`, in order. A run of frames is one Arrow batch.

        A record of which no rows can be made is a gap: it must not stop those behind it, again and again.
        """
        first_row = self.cap_seq
        try:
            return self._of(records)
        except Exception as error:
            self.cap_seq = first_row
            if len(records) > 1:
                return [made for record in records for made in self.of([record])]
            log.warning("a record is left out of the capture: %s", words_of(error))
            return [self._of_gap(records[0])]

    def _of(self, records: Sequence[Record]) -> list[Made]:
        made: list[Made] = []
        for kind, run in groupby(records, lambda record: record.kind):
            if kind == Kind.FRAME:
                made += self._frames(list(run))
            elif kind == Kind.WIRE:
                made.append(self._items(list(run)))
            else:
                made += (self._of_ledger(record) for record in run)
        return made

    def _frames(self, records: list[Record]) -> list[Made]:
        counts = np.array([record.messages for record in records])
        count = int(counts.sum())
        data = b"".join([*(record.data for record in records), PAD])
        columns, keep = messages.columns(data, *_bounds(data, records), self.pattern)
        columns |= _spread(records, counts)
        ones = np.ones(count, np.int64)
        columns |= {"kind": ones * int(Kind.FRAME), "count": ones}
        batch = self._batch(columns, count, keep)
        return [Made(batch, records[-1].number + 1)] if batch.num_rows else []

    def _items(self, records: list[Record]) -> Made:
        """Return the rows of items that were on a wire."""
        counts = np.array([record.messages for record in records])
        count, data = int(counts.sum()), b"".join(bytes(record.data) for record in records)
        start, size = _bounds(data, records)
        ones = np.ones(count, np.int64)
        columns = _spread(records, counts) | {"kind": ones * int(Kind.WIRE), "count": ones}
        columns |= {name: pa.nulls(count, self.schema.field(name).type) for name in NO_MESSAGE}
        columns |= {"message_bytes": size, "payload": messages.gather(data, start, start + size)}
        return Made(self._batch(columns, count, None), records[-1].number + 1)

    def _of_ledger(self, record: Record) -> Made:
        """Return the rows of a record that has counts, an event, or a gap."""
        if record.kind == Kind.GAP:
            return self._of_gap(record)
        return self._of_entries(record, place_of(record.place).hub, json.loads(bytes(record.data)))

    def _of_gap(self, record: Record) -> Made:
        """Return the row that says that the messages of a record are missing."""
        self.cap_seq += record.messages
        return self._of_entries(
            record._replace(kind=int(Kind.GAP)), "", [("", "", 0, "not captured", record.messages)]
        )

    def _of_entries(self, record: Record, hub: str, entries: Sequence[Sequence[Any]]) -> Made:
        common = {"ts_ns": record.ts_ns, "boot": self.boot, "kind": record.kind, "hub": hub}
        rows = [
            dict(zip(("bus", "peer", "dir", "reason", "count"), entry, strict=True), **common)
            | {"verdict": int(verdict_of(entry[3])), "cap_seq": number}
            for number, entry in enumerate(entries, self.cap_seq)
        ]
        self.cap_seq += len(rows)
        return Made(pa.RecordBatch.from_pylist(rows, schema=self.schema), record.number + 1)

    def _batch(self, columns: dict[str, Any], count: int, keep: Flags | None) -> pa.RecordBatch:
        columns["boot"] = columns["cap_seq"] = np.full(count, self.boot)
        arrays = [_array(columns[column.name], self.schema.field(column.name).type) for column in COLUMNS]
        if keep is not None and not keep.all():
            mask, count = pa.array(keep), int(keep.sum())
            arrays = [array.filter(mask) for array in arrays]
        arrays[_CAP_SEQ] = pa.array(np.arange(self.cap_seq, self.cap_seq + count))
        self.cap_seq += count
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values).cast(kind, safe=False)


def _spread(records: list[Record], counts: Ints) -> dict[str, Any]:
    """Return the columns that all messages of a record share, repeated for each message."""
    names: dict[bytes, int] = {}
    indices = np.array([names.setdefault(record.place, len(names)) for record in records])
    index = pa.array(np.repeat(indices, counts))
    places = map(place_of, names)
    values = zip(RecordPlace._fields, zip(*places, strict=True), strict=True)
    columns: dict[str, Any] = {name: pa.array(each, _KINDS[name]).take(index) for name, each in values}
    columns["ts_ns"] = _times(records, counts)
    return columns


def _times(records: list[Record], counts: Ints) -> Ints:
    """Return the time of each message: its own, or that of its record."""
    times = np.repeat(np.array([record.ts_ns for record in records], np.int64), counts)
    start = 0
    for record in records:
        if record.times:
            times[start : start + record.messages] = np.frombuffer(record.times, np.int64)
        start += record.messages
    return times


def _bounds(data: bytes, records: list[Record]) -> tuple[Ints, Ints]:
    """Return the start and the size of each message in the joined data."""
    buffer = bytearray(data)
    heads: list[Ints] = []
    position, alone = 0, list[int]()
    for record in records:
        size = len(record.data)
        if record.messages == 1:
            alone.append(position)
        else:
            heads += np.array(alone, np.int64), _heads(buffer, position, position + size, record.messages)
            alone = []
        position += size
    head = np.concatenate([*heads, np.array(alone, np.int64)])
    start = head + LENGTH_BYTES
    stop = np.append(head[1:], position)
    return start, stop - start


def _heads(buffer: bytearray, start: int, stop: int, count: int) -> Ints:
    """Return the offset of the length of each message in a batch."""
    found: list[Ints] = []
    length_at = LENGTH.unpack_from
    while count:
        run, stride = equal_run(buffer, start, stop, count)
        if run:
            found.append(start + stride * np.arange(run))
            start, count = start + run * stride, count - run
        if run >= _SOON:
            continue
        walk = min(_WALK, count)
        starts = []
        for _ in range(walk):
            starts.append(start)
            start += LENGTH_BYTES + length_at(buffer, start)[0]
        found.append(np.array(starts, np.int64))
        count -= walk
    return np.concatenate(found) if found else np.empty(0, np.int64)
