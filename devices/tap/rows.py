"""Turns records of the ring into rows of a capture: whole batches of frames at a time, by numpy and Arrow.

Needs pyarrow and numpy; only the tap's writer process imports it.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bus.wire.batch import LENGTH, LENGTH_BYTES, equal_run
from bus.wire.envelope import ENVELOPE_BYTES, HOPS_MAX, LENGTH_MARK, MAGIC, MARK, OPAQUE
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN
from capture.schema import COLUMNS, Kind, verdict_of
from devices.tap.ring import Record, RecordPlace, place_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_PAD = bytes(ENVELOPE_BYTES + FRAME_BYTES_MIN)  # so that looking at a header never leaves the buffer
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
_NO_MESSAGE = "origin", "seq", "hops", "type", "tokens"
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
        """Return the rows of `records`, in order. A run of frames is one Arrow batch."""
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
        columns, keep = _messages(records, self.pattern)
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
        columns |= {name: pa.nulls(count, self.schema.field(name).type) for name in _NO_MESSAGE}
        columns |= {"message_bytes": size, "payload": _gather(data, start, start + size)}
        return Made(self._batch(columns, count, None), records[-1].number + 1)

    def _of_ledger(self, record: Record) -> Made:
        """Return the rows of a record that has counts, an event, or a gap."""
        if record.kind == Kind.GAP:
            self.cap_seq += record.messages
            entries = [("", "", 0, "not captured", record.messages)]
        else:
            entries = json.loads(bytes(record.data))
        common = {
            "ts_ns": record.ts_ns, "boot": self.boot, "kind": record.kind, "hub": place_of(record.place).hub,
        }  # fmt: skip
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


def _messages(records: list[Record], pattern: Sequence[int]) -> tuple[dict[str, Any], Flags | None]:
    """Return the columns of the messages themselves, and which messages fit the pattern (None: all)."""
    data = b"".join([*(record.data for record in records), _PAD])
    start, size = _bounds(data, records)
    octets = np.frombuffer(data, np.uint8)
    # as `bus.wire.envelope.take_apart`, for a whole column of messages
    enveloped = (size >= ENVELOPE_BYTES) & (octets[start] == MAGIC) & (octets[start + 2] >= MARK)
    frame = start + enveloped * ENVELOPE_BYTES
    tokens = octets[frame + 1].astype(np.int64)
    data_bytes = _number(octets, frame + 2, 2)
    expected = enveloped * ENVELOPE_BYTES + FRAME_BYTES_MIN + 4 * tokens + data_bytes
    announced = _number(octets, start + 2, 2)
    framed = (
        (size - enveloped * ENVELOPE_BYTES >= FRAME_BYTES_MIN)
        & (expected == size)
        & (data_bytes <= DATA_BYTES_MAX)
    )
    named = np.where(framed, LENGTH_MARK + size - ENVELOPE_BYTES, OPAQUE)
    whole = enveloped & (octets[start + 1] <= HOPS_MAX) & (announced == named)
    legal = framed & (whole | ~enveloped)
    enveloped = whole
    content = start + enveloped * ENVELOPE_BYTES
    first = np.where(legal, content + FRAME_BYTES_MIN, content)
    last = np.where(legal, first + 4 * tokens, content)
    keep = _fits(octets, first, tokens * legal, pattern) if pattern else None
    return {
        "message_bytes": size,
        "origin": _known(_number(octets, start + 4, 4), enveloped),
        "seq": _known(_number(octets, start + 8, 4), enveloped),
        "hops": _known(octets[start + 1] & 15, enveloped, pa.int16()),
        "type": _known(octets[frame], legal, pa.int16()),
        "tokens": _tokens(data, first, last, legal),
        "payload": _gather(data, last, start + size),
    }, keep


def _fits(octets: npt.NDArray[np.uint8], first: Ints, tokens: Ints, pattern: Sequence[int]) -> Flags:
    """Return which messages begin with the pattern's tokens."""
    keep = tokens >= len(pattern)
    for number, token in enumerate(pattern):
        at = np.where(keep, first + 4 * number, 0)
        keep &= _number(octets, at, 4) == token
    return keep


def _known(values: npt.NDArray[Any], known: Flags, kind: Any = None) -> pa.Array:
    return pa.array(values.astype(np.int64), mask=~known).cast(kind or pa.int64())


def _number(octets: npt.NDArray[np.uint8], at: Ints, width: int) -> Ints:
    """Return the big-endian numbers of `width` bytes at the offsets `at`."""
    value = octets[at].astype(np.int64)
    for offset in range(1, width):
        value = value << 8 | octets[at + offset]
    return value


def _gather(data: bytes, start: Ints, stop: Ints) -> pa.Array:
    """Return `data[start:stop]` of each pair, copied by Arrow."""
    offsets = np.empty(2 * len(start), np.int32)
    offsets[0::2], offsets[1::2] = start, stop
    pieces = pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return pieces.take(pa.array(np.arange(0, len(offsets), 2)))


def _tokens(data: bytes, start: Ints, stop: Ints, legal: Flags) -> pa.Array:
    """Return the tokens between two offsets as lists of u32; null where there is no legal frame."""
    pieces = _gather(data, start, stop)
    ends = np.concatenate([[0], np.cumsum(stop - start)])
    raw = pieces.buffers()[2]
    words = np.frombuffer(raw, ">u4", int(ends[-1]) // 4) if ends[-1] else np.empty(0, ">u4")
    offsets = pa.array((ends // 4).astype(np.int32))
    values = pa.array(words.astype(np.uint32))
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~legal))


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
