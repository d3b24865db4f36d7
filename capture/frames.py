"""CAN frames of captures, many at a time: numpy columns, the rows of kind 7 that they are, and back.

A frame in a row is the kernel's `can_frame` (16 bytes) or `canfd_frame` (72), little-endian: identifier u32
with its top bits (`bus.wire.identifier`), length u8, flags u8 (of FD frames), u8, length code u8 (of classic
frames), data. Needs numpy and pyarrow.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.schema import COLUMNS, Direction, Kind

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

FRAMES: Final = "frames"
"""The `reason` of a row whose item is a CAN frame."""
SWITCH, STATE = 0x01, 0x02
"""Flags of an FD frame, BRS and ESI of canfd_frame."""
FD_FLAGS: Final = 0x0F
"""The flags that are kept; 0x04 only says that it is an FD frame, and newer kernels set it always."""
CLASSIC_BYTES, FD_BYTES = 16, 72
CLASSIC_DATA, FD_DATA = 8, 64
FD_SIZES: Final = (*range(9), 12, 16, 20, 24, 32, 48, 64)
"""The lengths of FD frames by their length codes, 0 to 15."""
TOO_LONG: Final = "standard frames whose identifiers have more than 11 bits"
FILE: Final = "file "
"""The beginning of the hubs of rows that were imported; the rest is the name of the file."""
_BUS: Final = "can "
_HEAD = 8
_LITTLE = sys.byteorder == "little"
_CODE_MIN, _CODE_MAX = 9, 15


@dataclass(frozen=True, slots=True)
class Frames:
    """CAN frames in the order of a file; all columns have one length.

    `ids` are those of SocketCAN, with the top bits. `data` has 8 or 64 columns, zeros after `sizes`. `marks`
    are the flags of an FD frame, or the length code of a classic one (9 to 15, of 8 bytes; else 0).
    `channel` counts in `names`. `ts_ns` is in ns since 1970.
    """

    ts_ns: Ints
    channel: Ints
    is_sent: Flags
    ids: Words
    sizes: Octets
    marks: Octets
    is_fd: Flags
    data: Octets
    names: Sequence[str]

    @classmethod
    def of(cls, columns: Iterable[Any], names: Sequence[str]) -> "Frames":
        """Make frames of their columns, in their order here."""
        every = [*columns, names]
        return cls(*every)

    def __len__(self) -> int:
        return len(self.ts_ns)

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns, in their order here."""
        return (
            self.ts_ns, self.channel, self.is_sent, self.ids, self.sizes, self.marks, self.is_fd, self.data,
        )  # fmt: skip

    def chosen(self, which: npt.NDArray[np.generic]) -> "Frames":
        """Return the frames that a mask or a list of places names."""
        return Frames.of((column[which] for column in self.columns), self.names)

    def _has(self, bit: int) -> Flags:
        found: Flags = np.not_equal(self.ids & np.uint32(bit), 0)
        return found

    @property
    def is_error(self) -> Flags:
        return self._has(ERROR)

    @property
    def is_extended(self) -> Flags:
        return self._has(EXTENDED)

    @property
    def is_remote(self) -> Flags:
        return self._has(REMOTE)


def are_too_long(ids: Words) -> Flags:
    """Return which identifiers have more bits than those of a standard frame, which they say they are of."""
    is_standard = np.equal(ids & np.uint32(ERROR | EXTENDED), 0)
    found: Flags = is_standard & np.greater(ids & np.uint32(IDENTIFIER), STANDARD_MAX)
    return found


def joined(parts: Sequence[Frames]) -> Frames:
    """Join frames of one or more chunks. Their names become one list, each name once."""
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    place = {name: number for number, name in enumerate(names)}
    width = max(part.data.shape[1] for part in parts)
    channels = [np.array([place[name] for name in part.names], np.int64)[part.channel] for part in parts]
    columns = [np.concatenate(column) for column in zip(*(part.columns[2:-1] for part in parts), strict=True)]
    times = np.concatenate([part.ts_ns for part in parts])
    data = np.concatenate([widened(part.data, width) for part in parts])
    return Frames.of([times, np.concatenate(channels), *columns, data], names)


def widened(data: Octets, width: int) -> Octets:
    """Return data with zeros up to `width` columns."""
    return data if data.shape[1] >= width else np.pad(data, ((0, 0), (0, width - data.shape[1])))


def items(frames: Frames) -> pa.Array:
    """Return the frames as bytes of the kernel."""
    has_fd = bool(frames.is_fd.any())
    width = FD_BYTES if has_fd else CLASSIC_BYTES
    raw = np.zeros((len(frames), width), np.uint8)
    raw[:, :4] = frames.ids.astype("<u4" if _LITTLE else ">u4").view(np.uint8).reshape(-1, 4)
    raw[:, 4] = frames.sizes
    raw[:, 5] = np.where(frames.is_fd, frames.marks, 0)
    raw[:, 7] = np.where(frames.is_fd, 0, frames.marks)
    data = frames.data[:, : width - _HEAD]
    raw[:, _HEAD : _HEAD + data.shape[1]] = data
    sizes = np.where(frames.is_fd, FD_BYTES, CLASSIC_BYTES)
    kept = raw if not has_fd or frames.is_fd.all() else raw[np.arange(width) < sizes[:, None]]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(kept))]
    return pa.Array.from_buffers(pa.binary(), len(frames), buffers)


class Parsed(NamedTuple):
    """Frames out of items; `good` says which items were some."""

    ids: Words
    sizes: Octets
    marks: Octets
    is_fd: Flags
    data: Octets
    good: Flags


def parsed(array: pa.Array) -> Parsed:
    """Read items of the kernel. Those of another length, or with more data than they may have, are none."""
    lengths = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    good = (lengths == CLASSIC_BYTES) | (lengths == FD_BYTES)
    start = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array)][good]
    raw = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    is_fd = lengths[good] == FD_BYTES
    width = FD_BYTES if is_fd.any() else CLASSIC_BYTES
    found = raw[np.minimum(start[:, None] + np.arange(width, dtype=np.int64), len(raw) - 1)]
    ids = np.ascontiguousarray(found[:, :4]).view("<u4" if _LITTLE else ">u4").reshape(-1)
    sizes, most = found[:, 4], np.where(is_fd, FD_DATA, CLASSIC_DATA)
    fits = sizes <= most
    good[np.flatnonzero(good)[~fits]] = False
    data = np.where(np.arange(width - _HEAD) < sizes[:, None], found[:, _HEAD:], 0).astype(np.uint8)
    marks = np.where(is_fd, found[:, 5] & FD_FLAGS, codes_of(found[:, 7], sizes)).astype(np.uint8)
    columns = ids.astype(np.uint32), sizes, marks, is_fd, data
    return Parsed._make([*(column[fits] for column in columns), good])


def codes_of(codes: Octets, sizes: Octets) -> Octets:
    """Return the length codes that classic frames may have: 9 to 15, of 8 bytes; else 0."""
    legal = (sizes == CLASSIC_DATA) & (codes >= _CODE_MIN) & (codes <= _CODE_MAX)
    return np.where(legal, codes, 0).astype(np.uint8)


_CONSTANT: Final = {"kind": int(Kind.WIRE), "count": 1, "verdict": 0, "reason": FRAMES}


def rows(frames: Frames, hub: str, boot: int, first: int, schema: pa.Schema) -> pa.RecordBatch:
    """Make the rows of frames, with numbers from `first` on."""
    count = len(frames)
    payload = items(frames)
    names = pa.array(list(frames.names), pa.string())
    index = pa.array(frames.channel)
    sizes = pc.binary_length(payload)
    columns = {
        "ts_ns": frames.ts_ns, "boot": pa.repeat(boot, count), "hub": pa.repeat(hub, count),
        "cap_seq": np.arange(first, first + count),
        "bus": pc.binary_join_element_wise(_BUS, names, "").take(index),
        "peer": pc.binary_join_element_wise("can", names, ":").take(index),
        "dir": np.where(frames.is_sent, int(Direction.TX), int(Direction.RX)).astype(np.int16),
        "message_bytes": sizes, "payload": payload,
        **{name: pa.repeat(value, count) for name, value in _CONSTANT.items()},
    }  # fmt: skip
    arrays = [
        pa.array(columns[one.name]).cast(schema.field(one.name).type)
        if one.name in columns else pa.nulls(count, schema.field(one.name).type)
        for one in COLUMNS
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def channel_of(hub: str, bus: str, peer: str) -> str:
    """Return the channel of a row: of a file as the file has it, else what stands last in the name of a link,
    such as `can:socketcan:can0`."""
    return bus.removeprefix(_BUS) if hub.startswith(FILE) else peer.rpartition(":")[2]


def channels_of(batch: pa.RecordBatch) -> pa.Array:
    """Return the channels of rows, as `channel_of` does."""
    of_link, of_file = _without(batch["peer"], "(?s)^.*:"), _without(batch["bus"], f"^{_BUS}")
    return pc.if_else(pc.starts_with(batch["hub"], FILE), of_file, of_link)


def _without(words: pa.Array, pattern: str) -> pa.Array:
    coded = words.dictionary_encode()
    return pc.replace_substring_regex(coded.dictionary, pattern, "").take(coded.indices)


Numbered = tuple[Ints, Frames]
"""Frames, and a number for each by which they are in order."""


def frames_of(batch: pa.RecordBatch) -> Frames:
    """Return the CAN frames in rows of a capture, of all wires. Other rows are passed by."""
    return _frames_of(batch)[1]


def numbered_of(batch: pa.RecordBatch) -> Numbered:
    """Return the CAN frames in rows of one run, with the numbers of the rows."""
    rows, frames = _frames_of(batch)
    return rows["cap_seq"].to_numpy(), frames


def _frames_of(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Frames]:
    table = batch.filter(pc.and_(pc.equal(batch["kind"], int(Kind.WIRE)), pc.equal(batch["reason"], FRAMES)))
    found = parsed(table["payload"])
    if not found.good.all():
        table = table.filter(pa.array(found.good))
    coded = channels_of(table).dictionary_encode()
    names, channel = coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)
    times = table["ts_ns"].to_numpy()
    is_sent = table["dir"].to_numpy() == int(Direction.TX)
    return table, Frames.of([times, channel, is_sent, *found[:-1]], names)


def ordered(runs: Sequence[Iterator[Frames]]) -> Iterator[Frames]:
    """Merge frames of several runs by time. Holds one chunk of each run."""
    if len(runs) == 1:
        yield from runs[0]
        return
    yield from in_order([((part.ts_ns, part) for part in run) for run in runs])


def in_order(runs: Sequence[Iterator[Numbered]]) -> Iterator[Frames]:
    """Merge frames of several runs by their numbers. Holds one chunk of each run."""
    held: dict[int, Numbered] = {}
    while True:
        for number, run in enumerate(runs):
            if number not in held and (found := next((one for one in run if len(one[1])), None)):
                held[number] = found
        if not held:
            return
        until = min(int(numbers.max()) for numbers, _ in held.values())
        ready = list[Numbered]()
        for number, (numbers, chunk) in list(held.items()):
            due = numbers <= until
            if due.any():
                ready.append((numbers[due], chunk.chosen(due)))
            if due.all():
                del held[number]
            else:
                held[number] = numbers[~due], chunk.chosen(~due)
        order = np.argsort(np.concatenate([numbers for numbers, _ in ready]), kind="stable")
        yield joined([chunk for _, chunk in ready]).chosen(order)
