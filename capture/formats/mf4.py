"""MF4, the measurement data format of ASAM, version 4: frames of CAN that were logged on a bus, read.

Source: ASAM MDF 4.1 and its associated standard for bus logging. Times count from the start in the header,
which is taken as UTC. The end of a file may be missing; one whose description comes after what is cut off is
refused, because nothing tells what its bytes are. Needs numpy.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bus.machine.scratch import Scratch
from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.files import CaptureError
from capture.formats.columns import channel_of
from capture.formats.mdf_blocks import (
    VIRTUAL,
    VLSD,
    Blocks,
    Channel,
    DataGroup,
    Group,
    began_ns,
    content,
    data_groups,
)
from capture.formats.mdf_records import Mixed, Records, Values, Window, equal, ints, times_ns
from capture.formats.source import LeftOut, Source
from capture.frames import (
    CLASSIC_DATA,
    FD_DATA,
    FD_SIZES,
    STATE,
    SWITCH,
    TOO_LONG,
    Frames,
    are_too_long,
    codes_of,
    joined,
    ordered,
)
from capture.schema import TIME_MAX_NS

SORTS: Final = {"CAN_DataFrame": 0, "CAN_RemoteFrame": REMOTE, "CAN_ErrorFrame": ERROR}
"""The names of frames in the standard, and what their identifiers have."""
_TEXTS: Final = (6, 7)
_CHUNK: Final = 1 << 14


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. Raises `CaptureError` if nothing in the file says what its bytes are."""
    with Scratch() as place:
        path = Path(place, "file.mf4")
        with path.open("w+b") as file:
            while piece := source.read():
                file.write(piece)
            file.flush()
            is_empty = not file.tell()
            whole = b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield from _frames_in(Blocks(memoryview(whole)), source)


def _frames_in(blocks: Blocks, source: Source) -> Iterator[Frames]:
    begin_ns, found = began_ns(blocks), list(data_groups(blocks, source.told))
    if begin_ns is None or (not found and source.told.counts):
        raise CaptureError(f"{source.path}: MF4 that is cut off before what describes its frames")
    if begin_ns > TIME_MAX_NS:
        raise CaptureError(f"{source.path}: MF4 that began at a time that no capture can hold")
    numbers = _Numbers(0 if any(_has_zero(blocks, one) for one in found) else 1)
    runs = (_run(blocks, one, numbers, begin_ns, source.told) for one in found)
    if some := [_sound(run, source.told) for run in runs if run is not None]:
        yield from ordered(some)


def _sound(run: Iterator[Frames], told: LeftOut) -> Iterator[Frames]:
    """Leave out frames that are none, and those whose times no capture can hold: beyond the largest, they are
    below zero."""
    for frames in run:
        good, is_long = frames.ts_ns >= 0, are_too_long(frames.ids)
        told.leave("frames of a time that no capture can hold", int((~good).sum()))
        told.leave(TOO_LONG, int((good & is_long).sum()))
        good &= ~is_long
        if good.any():
            yield frames if good.all() else frames.chosen(good)


@dataclass(frozen=True)
class _Numbers:
    """The numbers of channels in a file: from 1, as in the standard, or from 0, as python-can has them."""

    first: int

    def names(self, numbers: list[int]) -> list[str]:
        return [channel_of(number + 1 - self.first) for number in numbers]


def _has_zero(blocks: Blocks, data: DataGroup) -> bool:
    """Return whether a frame has channel 0. The whole file is looked at: one channel has one name in it."""
    channels = {
        group.number: found
        for group in data.groups
        if (of := Fields.of(group, _Numbers(1))) is not None and (found := of.channels.get("BusChannel"))
    }
    if not channels or not data.data:
        return False
    told = LeftOut()
    pieces = content(blocks, data.data, told)
    if not data.id_bytes:
        group = data.groups[0]
        parts = ((group.number, rows) for rows in equal(pieces, group))
    else:
        mixed = Mixed(data, {}, told)
        parts = ((one.group.number, one.rows) for piece in pieces for one in mixed.feed(piece))
    return any(number in channels and (_values(rows, channels[number]) == 0).any() for number, rows in parts)


class Fields(NamedTuple):
    """The channels of frames of one sort, by the last part of their names."""

    name: str
    channels: dict[str, Channel]
    master: Channel | None
    numbers: _Numbers

    @classmethod
    def of(cls, group: Group, numbers: _Numbers) -> "Fields | None":
        """Return those of a group, None if it has no frames."""
        for sort in SORTS:
            lead = f"{sort}."
            found = {name[len(lead) :]: one for name, one in group.channels.items() if name.startswith(lead)}
            if "ID" in found or (found and sort == "CAN_ErrorFrame"):
                return cls(sort, found, group.master, numbers)
        return None

    @property
    def values(self) -> Channel | None:
        """The channel of data, if these have each a length of their own."""
        found = self.channels.get("DataBytes")
        return found if found and found.kind == VLSD else None


def _run(
    blocks: Blocks, data: DataGroup, numbers: _Numbers, begin_ns: int, told: LeftOut
) -> Iterator[Frames] | None:
    fields = {one.number: of for one in data.groups if (of := Fields.of(one, numbers)) is not None}
    if not fields:
        has_records = data.data and any(content(blocks, data.data, told))
        told.leave("groups of channels that are no frames of CAN", int(has_records))
        return None
    pieces = content(blocks, data.data, told) if data.data else iter(())
    if data.id_bytes:
        return _of_mixed(pieces, data, fields, begin_ns, told)
    group = data.groups[0]
    values = fields[group.number].values
    window = Window(content(blocks, values.signal, told), told) if values else None
    return _of_equal(pieces, group, fields[group.number], window, begin_ns)


def _of_equal(
    pieces: Iterator[bytes], group: Group, fields: Fields, window: Window | None, begin_ns: int
) -> Iterator[Frames]:
    for whole in equal(pieces, group):
        for at in range(0, len(whole), _CHUNK):
            rows, values = whole[at : at + _CHUNK], None
            if window and fields.values:
                good, values = window.take(ints(rows, fields.values))
                rows = rows[good]
            if len(rows):
                yield _frames(fields, rows, values, begin_ns)


def _of_mixed(
    pieces: Iterator[bytes], data: DataGroup, fields: dict[int, Fields], begin_ns: int, told: LeftOut
) -> Iterator[Frames]:
    wants = {number: one.values for number, one in fields.items() if one.values}
    mixed = Mixed(data, wants, told)
    for piece in pieces:
        found = list(mixed.feed(piece))
        frames = [one for one in found if one.group.number in fields]
        others = sum(len(one.rows) for one in found) - sum(len(one.rows) for one in frames)
        told.leave("records that are no frames of CAN", others)
        if frames:
            yield _in_place(frames, fields, begin_ns)
    mixed.end()


def _in_place(found: list[Records], fields: dict[int, Fields], begin_ns: int) -> Frames:
    """Return the frames of records in the order of the file."""
    frames = joined([_frames(fields[one.group.number], one.rows, one.values, begin_ns) for one in found])
    return frames.chosen(np.argsort(np.concatenate([one.places for one in found]), kind="stable"))


def _frames(fields: Fields, rows: npt.NDArray[np.uint8], values: Values | None, begin_ns: int) -> Frames:
    of = partial(_of, fields, rows)
    is_fd, code = of("EDL") != 0, of("DLC" if "DLC" in fields.channels else "DataLength")
    sizes = np.where(is_fd, np.array(FD_SIZES)[code & 15], np.minimum(code, CLASSIC_DATA)).astype(np.uint8)
    switch, state = np.where(of("BRS"), SWITCH, 0), np.where(of("ESI"), STATE, 0)
    marks = np.where(is_fd, switch | state, codes_of(code.astype(np.uint8), sizes))
    channels, channel = np.unique(of("BusChannel"), return_inverse=True)
    has_channel = "BusChannel" in fields.channels
    names = fields.numbers.names(channels.tolist()) if has_channel else [channel_of(1)]
    return Frames(
        begin_ns + times_ns(rows, fields.master), channel.astype(np.int64), of("Dir") != 0,
        _identifiers(fields, of("ID"), of("IDE")), sizes, marks.astype(np.uint8), is_fd,
        _data(fields, rows, values, sizes), names,
    )  # fmt: skip


def _of(fields: Fields, rows: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.int64]:
    channel = fields.channels.get(name)
    return np.zeros(len(rows), np.int64) if channel is None else _values(rows, channel)


def _values(rows: npt.NDArray[np.uint8], channel: Channel) -> npt.NDArray[np.int64]:
    if channel.kind == VIRTUAL:
        return np.full(len(rows), int(channel.offset), np.int64)
    if channel.form in _TEXTS and channel.byte < rows.shape[1]:  # a direction in words, "Rx" or "Tx"
        return np.where(rows[:, channel.byte] == ord("T"), 1, 0)
    return ints(rows, channel)


def _identifiers(
    fields: Fields, words: npt.NDArray[np.int64], extended: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    number = words & IDENTIFIER
    is_extended = (
        extended & 1 if "IDE" in fields.channels else (words & EXTENDED != 0) | (number > STANDARD_MAX)
    )
    return (number | np.where(is_extended, EXTENDED, 0) | SORTS[fields.name]).astype(np.uint32)


def _data(
    fields: Fields, rows: npt.NDArray[np.uint8], values: Values | None, sizes: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    channel, width = fields.channels.get("DataBytes"), FD_DATA if sizes.max() > CLASSIC_DATA else CLASSIC_DATA
    data = np.zeros((len(rows), width), np.uint8)
    if values is not None:
        data[:] = values.data[:, :width]
    elif channel is not None and channel.kind != VLSD:
        octets = rows[:, channel.byte : channel.byte + min(width, channel.bits // 8)]
        data[:, : octets.shape[1]] = octets
    data[np.arange(width) >= sizes[:, None]] = 0
    return data
