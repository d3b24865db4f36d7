"""CAN frames of captures and files, written into a file of the field. Needs numpy and pyarrow."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bus.errors import why_of
from bus.names import Names
from capture import ranges
from capture.files import CaptureError, boot_of, finished, gateway_of, is_ours, opened
from capture.formats.format import Format, RowOutput, Style
from capture.formats.losses import Losses
from capture.formats.source import LeftOut, Source
from capture.formats.table import BY_KEY, format_of
from capture.formats.target import written
from capture.frames import (
    FRAMES,
    Frames,
    Numbered,
    Parsed,
    channel_of,
    channels_of,
    frames_of,
    in_order,
    numbered_of,
    ordered,
    parsed,
)
from capture.pcapng import Packet
from capture.schema import META_SOURCE, TOLD, Direction, Kind

_ROWS: Final = 1 << 16
_COLUMNS: Final = ["ts_ns", "kind", "hub", "bus", "peer", "dir", "reason", "payload"]
_ITEM: Final = f"{FRAMES}:".encode()
OTHERS: Final = "rows that are no CAN frames"


Rows = tuple[Iterable[Packet], Names]
"""Messages of a capture, and the names of their tokens."""


class Found(NamedTuple):
    """The CAN frames of a capture or a file, how that wrote them, and what is left out meanwhile."""

    format: str
    style: Style
    frames: Iterator[Frames]
    told: LeftOut


class FramePlace(NamedTuple):
    """A place where CAN frames were seen; None: any. `bus` is a segment or a channel.

    Only rows have a hub; those of a file of the field get one when it is imported.
    """

    hub: str | None = None
    bus: str | None = None

    @property
    def channel(self) -> str | None:
        """The channel that the bus may mean."""
        return None if self.bus is None else self.bus.removeprefix("can ")

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that were seen there."""
        if self.hub is not None:
            batch = batch.filter(pc.equal(batch["hub"], self.hub))
        if self.bus is not None:
            is_channel = pc.equal(channels_of(batch), self.channel)
            batch = batch.filter(pc.or_(pc.equal(batch["bus"], self.bus), is_channel))
        return batch

    def packets(self, packets: list[Packet]) -> list[Packet]:
        """Return the packets that were seen there."""
        return [
            one
            for one in packets
            if self.hub in (None, one.hub) and (self.bus in (None, one.bus) or _channel(one) == self.channel)
        ]

    def frames(self, frames: Frames) -> Frames:
        """Return the frames of a file that are of the channel."""
        if self.hub is None and self.bus is None:
            return frames
        known = np.array(
            [self.hub is None and self.channel in (None, name) for name in frames.names], np.bool_
        )
        return frames.chosen(known[frames.channel])


EVERYWHERE: Final = FramePlace()


@contextmanager
def frames_in(path: Path, key: str | None = None, place: FramePlace = EVERYWHERE) -> Iterator[Found]:
    """Open the CAN frames of a directory, in the order of time, or of a file. Raises `CaptureError`."""
    if path.is_dir() or (not path.exists() and str(path) != "-"):
        yield _in_directory(path, place)
        return
    with Source(path) as source:
        form = BY_KEY[key] if key else format_of(str(path), source.head)
        style: Style = {}
        frames = _of_items(form.read(source, style), source.told, place)
        first = next(frames, None)  # what a file begins with is learned by then
        yield Found(form.key, style, _behind(first, frames), source.told)


def _behind(first: Frames | None, frames: Iterator[Frames]) -> Iterator[Frames]:
    if first is not None:
        yield first
        yield from frames


def _in_directory(root: Path, place: FramePlace) -> Found:
    paths, told = finished(root), LeftOut()
    runs = [list(run) for _, run in groupby(paths, lambda path: (gateway_of(path), boot_of(path)))]
    frames = ordered([_of_run(run, told, place) for run in runs])
    with opened(runs[0][-1]) as file:  # the style is learned to the end of a log
        source = json.loads((file.metadata.metadata or {}).get(META_SOURCE.encode(), b"{}"))
    return Found(source.get("format", ""), source.get("style", {}), frames, told)


def _of_run(paths: list[Path], told: LeftOut, place: FramePlace) -> Iterator[Frames]:
    """Yield the frames of a run in the order of its rows, which are in files of several days."""
    for some in ranges.entwined(paths):
        if len(some) == 1:
            yield from _of_file(some[0], told, place)
        else:
            yield from in_order([_numbered(path, told, place) for path in some])


def _of_file(path: Path, told: LeftOut, place: FramePlace) -> Iterator[Frames]:
    for batch in _batches(path, place, _COLUMNS):
        frames = frames_of(batch)
        told.others += _recorded(batch) - len(frames)
        yield frames


def _numbered(path: Path, told: LeftOut, place: FramePlace) -> Iterator[Numbered]:
    for batch in _batches(path, place, [*_COLUMNS, "cap_seq"]):
        numbers, frames = numbered_of(batch)
        told.others += _recorded(batch) - len(frames)
        yield numbers, frames


def _batches(path: Path, place: FramePlace, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with opened(path) as file:
        if not is_ours(file):
            raise CaptureError(f"{path}: rewritten by another program; only pipeline jobs read such files")
        yield from map(place.rows, file.iter_batches(_ROWS, columns=columns))


def _recorded(batch: pa.RecordBatch) -> int:
    return pc.sum(pc.not_equal(batch["kind"], Kind.CONTENTS.value)).as_py() or 0


def _of_items(items: Iterator[Frames | list[Packet]], told: LeftOut, place: FramePlace) -> Iterator[Frames]:
    for item in items:
        frames = place.frames(item) if isinstance(item, Frames) else _of_packets(place.packets(item), told)
        if len(frames):
            yield frames


def _of_packets(packets: list[Packet], told: LeftOut) -> Frames:
    """Return the CAN frames among rows."""
    rows = [one for one in packets if one.kind == Kind.WIRE and one.message.startswith(_ITEM)]
    found: Parsed = parsed(pa.array([one.message[len(_ITEM) :] for one in rows], pa.binary()))
    told.others += sum(one.kind not in TOLD for one in packets) - len(found.ids)
    rows = [row for row, good in zip(rows, found.good.tolist(), strict=True) if good]
    names = list(dict.fromkeys(map(_channel, rows)))
    channel = np.array([names.index(_channel(row)) for row in rows], np.int64)
    is_sent = np.array([row.dir == Direction.TX for row in rows], np.bool_)
    times = np.array([row.ts_ns for row in rows], np.int64)
    return Frames.of([times, channel, is_sent, *found[:-1]], names)


def _channel(row: Packet) -> str:
    return channel_of(row.hub, row.bus, row.peer)


def exported(found: Found, form: Format, target: str, rows: Rows | None = None) -> tuple[int, int]:
    """Write frames to a file (`-`: the standard output), packed as its name says. Return their number, and
    that of the messages.

    With `rows`, a format that holds messages gets these too. What the format cannot hold is added to what was
    left out. Raises `CaptureError`.
    """
    form.check()
    count, messages, losses = 0, 0, Losses(form, found.told)
    style = found.style if found.format == form.key else {}
    try:
        with written(target, form.seeks) as file:
            output = form.output(file, style)
            for frames in found.frames:
                fitted = losses.fitted(frames, output_step_ns(form, style), bool(style.get("direction")))
                if len(fitted):
                    output.add(fitted)
                    count += len(fitted)
            if rows is not None and isinstance(output, RowOutput):
                messages = output.add_rows(*rows)
                found.told.others -= messages
            output.close()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CaptureError(f"{target}: {why_of(error)}") from error
    return count, messages


def output_step_ns(form: Format, style: Style) -> int:
    """Return the finest step of time that a file of a style has."""
    step_ns: int = style.get("step_ns", form.step_ns)
    return step_ns
