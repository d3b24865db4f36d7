"""MF4, the measurement data format of ASAM, version 4: bus events of CAN, by asammdf.

Source: ASAM MDF 4.1 and its associated standard for bus logging, and python-can's can.io.mf4. Times are ns
from the start in the header, which is taken as UTC. asammdf reads a file whole or not at all: one that is cut
off is refused, and frames of one time may change places. Needs numpy.
"""

import gc
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from bus.machine.scratch import Scratch
from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE
from capture.files import CaptureError
from capture.formats.columns import CODES, Numbers, channel_of
from capture.formats.source import Source
from capture.frames import CLASSIC_DATA, FD_DATA, FD_SIZES, STATE, SWITCH, Frames, codes_of, ordered

_SORTS: Final = (("CAN_DataFrame", 0), ("CAN_RemoteFrame", REMOTE), ("CAN_ErrorFrame", ERROR))
_ROWS: Final = 1 << 14
_STEP: Final = 1e9


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames, group by group. Raises `CaptureError` if asammdf cannot read the file."""
    from asammdf import MDF

    with Scratch() as place:
        path = Path(place, "file.mf4")
        with path.open("wb") as file:
            while piece := source.read():
                file.write(piece)
        try:
            with MDF(path) as measured:
                begin_ns = round(measured.start_time.timestamp() * 1e6) * 1000
                groups = enumerate(measured.groups)
                yield from ordered([_of_group(measured, *one, begin_ns, source) for one in groups])
        except Exception as error:  # of asammdf, or what slipped through it
            said = " ".join(str(error).split())[:100] or type(error).__name__
            _forget(error)
        else:
            return
    raise CaptureError(f"{source.path}: MF4 that is damaged or cut off ({said})")


def _forget(error: Exception) -> None:
    """Let go of what asammdf made of a file that it cannot read, whose end would raise and be printed."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    error.__traceback__ = error.__context__ = error.__cause__ = None
    gc.collect()
    sys.unraisablehook = hook


def _of_group(measured: Any, number: int, group: Any, begin_ns: int, source: Source) -> Iterator[Frames]:
    found = {str(channel.name) for channel in group.channels}
    for name, kind in _SORTS:
        if name in found:
            count = group.channel_group.cycles_nr
            for at in range(0, count, _ROWS):
                part = measured.get(name, number, record_offset=at, record_count=_ROWS, raw=True)
                yield _frames(part, name, kind, begin_ns)
            return
    source.told.leave(
        "groups of channels that are no frames of CAN", int(bool(found - {"time", "t", "Timestamp"}))
    )


def _frames(part: Any, name: str, kind: int, begin_ns: int) -> Frames:
    samples = part.samples
    count, known = len(samples), set(samples.dtype.names or ())

    def of(field: str) -> npt.NDArray[np.int64]:
        whole = f"{name}.{field}"
        return samples[whole].astype(np.int64) if whole in known else np.zeros(count, np.int64)

    ids = (of("ID") & IDENTIFIER | np.where(of("IDE") & 1, EXTENDED, 0) | kind).astype(np.uint32)
    is_fd, code = of("EDL") != 0, of("DLC")
    sizes = np.where(is_fd, np.array(FD_SIZES)[code & 15], np.minimum(code, CLASSIC_DATA)).astype(np.uint8)
    switch, state = np.where(of("BRS"), SWITCH, 0), np.where(of("ESI"), STATE, 0)
    marks = np.where(is_fd, switch | state, codes_of(code.astype(np.uint8), sizes))
    data = np.zeros((count, FD_DATA if is_fd.any() else CLASSIC_DATA), np.uint8)
    if (field := f"{name}.DataBytes") in known:
        octets = samples[field].astype(np.uint8).reshape(count, -1)[:, : data.shape[1]]
        data[:, : octets.shape[1]] = octets
    data[np.arange(data.shape[1]) >= sizes[:, None]] = 0
    channels, channel = np.unique(of("BusChannel"), return_inverse=True)
    times = begin_ns + np.round(part.timestamps * _STEP).astype(np.int64)
    names = [channel_of(int(one)) for one in channels]
    return Frames(
        times,
        channel.astype(np.int64),
        of("Dir") != 0,
        ids,
        sizes,
        marks.astype(np.uint8),
        is_fd,
        data,
        names,
    )


class Writer:
    """A writer of MF4 with a group for data frames, one for remote frames and one for error frames."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        from asammdf import MDF

        self._file, self._numbers = file, Numbers()
        self._measured = MDF(version="4.10")
        self._begin_ns: int | None = None
        self._groups: dict[str, int] = {}

    def add(self, frames: Frames) -> None:
        """Write frames."""
        if self._begin_ns is None:
            self._begin_ns = int(frames.ts_ns[0]) // 10**6 * 10**6
            self._measured.start_time = datetime.fromtimestamp(self._begin_ns / 1e9, UTC)
        for name, kind in _SORTS:
            which = (frames.ids & np.uint32(REMOTE | ERROR)) == kind
            if which.any():
                self._add(name, frames.chosen(which), self._begin_ns)

    def _add(self, name: str, frames: Frames, begin_ns: int) -> None:
        from asammdf import Signal

        samples = self._samples(name, frames)
        times = np.maximum(0, frames.ts_ns - begin_ns) / _STEP
        if name in self._groups:
            self._measured.extend(self._groups[name], [(times, None), (samples, None)])
        else:
            self._groups[name] = len(self._groups)
            self._measured.append(Signal(samples=samples, timestamps=times, name=name, source=_source()))

    def _samples(self, name: str, frames: Frames) -> npt.NDArray[np.void]:
        codes = np.array([CODES.get(size, 0) for size in range(FD_DATA + 1)])
        numbers = np.array([self._numbers.of(one) for one in frames.names])
        is_classic_code = (frames.marks != 0) & ~frames.is_fd
        fields: dict[str, tuple[str, npt.NDArray[Any]]] = {
            "BusChannel": ("<u1", numbers[frames.channel]), "ID": ("<u4", frames.ids & IDENTIFIER),
            "IDE": ("<u1", frames.is_extended),
            "DLC": ("<u1", np.where(is_classic_code, frames.marks, codes[frames.sizes])),
            "DataLength": ("<u1", np.where(frames.is_remote, 0, frames.sizes)),
            "Dir": ("<u1", frames.is_sent),
            "EDL": ("<u1", frames.is_fd), "BRS": ("<u1", frames.is_fd & (frames.marks & SWITCH != 0)),
            "ESI": ("<u1", frames.is_fd & (frames.marks & STATE != 0)),
        }  # fmt: skip
        kinds: list[Any] = [(f"{name}.{field}", kind) for field, (kind, _) in fields.items()]
        kinds.append((f"{name}.DataBytes", "u1", (FD_DATA,)))
        samples = np.zeros(len(frames), kinds)
        for field, (_, values) in fields.items():
            samples[f"{name}.{field}"] = values
        samples[f"{name}.DataBytes"][:, : frames.data.shape[1]] = frames.data
        return samples

    def close(self) -> None:
        """Write the file: asammdf keeps what came in a file of its own until now."""
        with Scratch() as place:
            path = self._measured.save(Path(place, "file.mf4"), compression=2)
            self._measured.close()
            with Path(path).open("rb") as made:
                copyfileobj(made, self._file)


def _source() -> Any:
    from asammdf.blocks.v4_blocks import SourceInformation
    from asammdf.blocks.v4_constants import BUS_TYPE_CAN, SOURCE_BUS

    return SourceInformation(source_type=SOURCE_BUS, bus_type=BUS_TYPE_CAN)
