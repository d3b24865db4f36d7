"""The writer of MF4: frames of CAN as events of a bus, in the order in which they came. Needs numpy.

Source: ASAM MDF 4.1 and its associated standard for bus logging. What describes the frames stands in front,
and each packed block of data behind its list: so a file that is cut off loses its end alone. Until it is
closed it says that it is unfinished.
"""

import zlib
from struct import Struct
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bus.wire.identifier import ERROR, IDENTIFIER, REMOTE
from capture.formats.columns import CODES, Numbers
from capture.formats.mdf_blocks import CHANNEL, GROUP, HEAD, ID_BYTES, MASTER, PACKED
from capture.frames import CLASSIC_DATA, FD_DATA, STATE, SWITCH, Frames, joined

_HEADER: Final = Struct("<QhhBBBx2d")
_IDENTITY: Final = Struct("<8s8s8s4xH30xHH")
_HEADER_BYTES: Final = HEAD.size + 6 * 8 + _HEADER.size
_UNFINISHED: Final = 0x01 | 0x10
_UNSIGNED, _OCTETS = 0, 10
_EVENT_OF_BUS: Final = 0x400
_COUNT_AT: Final = HEAD.size + 6 * 8 + 8
_CHUNK: Final = 1 << 12
"""The frames of a block, the most that an end that is cut off loses."""
_ABOUT: Final = (
    "<FHcomment><TX>frames of CAN</TX><tool_id>buscoupler</tool_id><tool_vendor>buscoupler</tool_vendor>"
    "<tool_version>1</tool_version></FHcomment>"
)
_FIELDS: Final = (
    ("BusChannel", 1), ("ID", 4), ("IDE", 1), ("DLC", 1), ("DataLength", 1), ("Dir", 1), ("EDL", 1),
    ("BRS", 1), ("ESI", 1),
)  # fmt: skip
_TIME_BYTES: Final = 8
_DATA_AT: Final = _TIME_BYTES + sum(size for _, size in _FIELDS)


class _Sort(NamedTuple):
    """A sort of records: the name of its frames, what their identifiers have, and the bytes of data."""

    name: str
    kind: int
    data_bytes: int

    @property
    def record(self) -> np.dtype[Any]:
        fields: list[Any] = [
            ("sort", "u1"),
            ("time", "<u8"),
            *((name, f"<u{size}") for name, size in _FIELDS),
        ]
        return np.dtype([*fields, ("data", "u1", (self.data_bytes,))])


_SORTS: Final = (
    _Sort("CAN_DataFrame", 0, CLASSIC_DATA), _Sort("CAN_DataFrame", 0, FD_DATA),
    _Sort("CAN_RemoteFrame", REMOTE, 0), _Sort("CAN_ErrorFrame", ERROR, CLASSIC_DATA),
)  # fmt: skip
_FD, _OF_REMOTE, _OF_ERROR = 1, 2, 3


class Layout:
    """Blocks one behind another from a byte of the file on. A block is added after those that it links to."""

    def __init__(self, begin: int) -> None:
        self.begin, self.data = begin, bytearray()

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    def add(self, kind: str, links: tuple[int, ...] = (), body: bytes = b"") -> int:
        """Add a block, and return where it begins."""
        place = self.end
        self.data += block(kind, links, body)
        return place

    def text(self, text: str, kind: str = "TX") -> int:
        """Add a block of text."""
        return self.add(kind, (), text.encode() + b"\0")

    def channel(
        self, name: str, then: int, place: tuple[int, int], form: int = _UNSIGNED, kind: int = 0,
        links: tuple[int, int, int] = (0, 0, 0), flags: int = _EVENT_OF_BUS,
    ) -> int:  # fmt: skip
        """Add a channel in front of another: at byte and bits, with links to members, conversion and unit."""
        members, conversion, unit = links
        every = then, members, self.text(name), 0, conversion, 0, unit, 0
        body = CHANNEL.pack(kind, int(kind == MASTER), form, 0, *place, flags)
        return self.add("CN", every, body + bytes(8 + 6 * 8))


def block(kind: str, links: tuple[int, ...], body: bytes) -> bytes:
    """Return a block, filled up to eight bytes."""
    size = HEAD.size + 8 * len(links) + len(body)
    head = HEAD.pack(b"##" + kind.encode(), size, len(links))
    return head + Struct(f"<{len(links)}Q").pack(*links) + body + bytes(-size % 8)


class Writer:
    """A writer of MF4. The number of frames is written at the end."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._numbers = file, Numbers()
        self._held: list[Frames] = []
        self._begin_ns, self._list_at, self._octets = -1, 0, 0
        self._groups: list[int] = []
        self._counts = [0] * len(_SORTS)

    def add(self, frames: Frames) -> None:
        """Write frames."""
        self._held.append(frames)
        if sum(map(len, self._held)) >= _CHUNK:
            whole = joined(self._held)
            count = len(whole) // _CHUNK * _CHUNK
            for at in range(0, count, _CHUNK):
                self._flush(whole.chosen(np.arange(at, at + _CHUNK)))
            self._held = [whole.chosen(np.arange(count, len(whole)))] if count < len(whole) else []

    def close(self) -> None:
        """Write the rest, and the numbers of frames."""
        if self._held:
            self._flush(joined(self._held))
        if not self._groups:
            self._begin(0)
        for place, count in zip(self._groups, self._counts, strict=True):
            self._write_at(place + _COUNT_AT, count.to_bytes(8, "little"))
        self._write_at(0, _identity(True))

    def _write_at(self, place: int, data: bytes) -> None:
        self._file.seek(place)
        self._file.write(data)
        self._file.seek(0, 2)

    def _begin(self, begin_ns: int) -> None:
        """Write what describes the frames."""
        self._begin_ns, layout = begin_ns, Layout(ID_BYTES + _HEADER_BYTES)
        history = layout.add("FH", (0, layout.text(_ABOUT, "MD")), Struct("<QhhB3x").pack(begin_ns, 0, 0, 0))
        self._groups = _described(layout)
        data = layout.add("DG", (0, self._groups[0], 0, 0), bytes([1]) + bytes(7))
        first = layout.add("HL", (layout.end + HEAD.size + 8 + 8,), Struct("<HB5x").pack(0, 0))
        header = (data, history, 0, 0, 0, 0), _HEADER.pack(begin_ns, 0, 0, 0, 0, 0, 0, 0)
        self._file.write(_identity(False) + block("HD", *header) + layout.data)
        self._links = data + HEAD.size + 2 * 8, first

    def _flush(self, frames: Frames) -> None:
        if not self._groups:
            self._begin(int(frames.ts_ns[0]) // 10**6 * 10**6)
        content = self._records(frames)
        packed = zlib.compress(content, 1)
        place = self._file.seek(0, 2)
        data_at = place + len(block("DL", (0, 0), _listed(0)))
        self._file.write(block("DL", (0, data_at), _listed(self._octets)))
        self._file.write(block("DZ", (), PACKED.pack(b"DT", 0, 0, len(content), len(packed)) + packed))
        before, link = self._links if not self._list_at else (self._list_at + HEAD.size, place)
        self._write_at(before, link.to_bytes(8, "little"))
        self._list_at, self._octets = place, self._octets + len(content)

    def _records(self, frames: Frames) -> bytes:
        """Return the records of frames, in their order."""
        sort = np.where(frames.is_fd, _FD, 0)
        sort[frames.is_remote], sort[frames.is_error] = _OF_REMOTE, _OF_ERROR
        ends = np.cumsum(np.array([one.record.itemsize for one in _SORTS])[sort])
        whole = np.zeros(int(ends[-1]), np.uint8)
        for number, one in enumerate(_SORTS):
            which = np.flatnonzero(sort == number)
            if len(which):
                rows = self._of_sort(frames.chosen(which), one, number)
                size = one.record.itemsize
                whole[(ends[which] - size)[:, None] + np.arange(size)] = rows.view(np.uint8).reshape(-1, size)
                self._counts[number] += len(which)
        return whole.tobytes()

    def _of_sort(self, frames: Frames, sort: _Sort, number: int) -> npt.NDArray[np.void]:
        codes = np.array([CODES.get(size, 0) for size in range(FD_DATA + 1)])
        numbers = np.array([self._numbers.of(name) for name in frames.names])
        is_code = (frames.marks != 0) & ~frames.is_fd
        columns: dict[str, npt.NDArray[Any] | int] = {
            "sort": number, "time": np.maximum(0, frames.ts_ns - self._begin_ns),
            "BusChannel": numbers[frames.channel], "ID": frames.ids & IDENTIFIER, "IDE": frames.is_extended,
            "DLC": np.where(is_code, frames.marks, codes[frames.sizes]),
            "DataLength": np.where(frames.is_remote, 0, frames.sizes), "Dir": frames.is_sent,
            "EDL": frames.is_fd, "BRS": frames.is_fd & (frames.marks & SWITCH != 0),
            "ESI": frames.is_fd & (frames.marks & STATE != 0),
        }  # fmt: skip
        rows = np.zeros(len(frames), sort.record)
        for name, values in columns.items():
            rows[name] = values
        width = min(sort.data_bytes, frames.data.shape[1])
        rows["data"][:, :width] = frames.data[:, :width]
        return rows


def _identity(is_finished: bool) -> bytes:
    name, flags = (b"MDF     ", 0) if is_finished else (b"UnFinMF ", _UNFINISHED)
    return _IDENTITY.pack(name, b"4.10    ", b"buscoupl", 410, flags, 0)


def _listed(begin: int) -> bytes:
    return Struct("<B3xIQ").pack(0, 1, begin)


def _described(layout: Layout) -> list[int]:
    """Add the sorts of records, and return where each is."""
    source = layout.add("SI", (layout.text("CAN"), 0, 0), Struct("<3B5x").pack(2, 2, 0))
    scale = layout.add("CC", (0, 0, 0, 0), Struct("<BBHHH4d").pack(1, 0, 0, 0, 2, 0, 0, 0, 1e-9))
    unit, then, places = layout.text("s"), 0, list[int]()
    for number, sort in reversed(list(enumerate(_SORTS))):
        members = _members(layout, sort)
        size = sort.record.itemsize - 1
        place = _TIME_BYTES, 8 * (size - _TIME_BYTES)
        frame = layout.channel(sort.name, 0, place, _OCTETS, links=(members, 0, 0))
        time = layout.channel("Timestamp", frame, (0, 64), kind=MASTER, links=(0, scale, unit), flags=0)
        links = then, time, layout.text(sort.name), source, 0, 0
        then = layout.add("CG", links, GROUP.pack(number, 0, 0x06, ord("."), size, 0))
        places.insert(0, then)
    return places


def _members(layout: Layout, sort: _Sort) -> int:
    then, at = 0, _DATA_AT
    if sort.data_bytes:
        then = layout.channel(f"{sort.name}.DataBytes", 0, (at, 8 * sort.data_bytes), _OCTETS)
    for name, size in reversed(_FIELDS):
        at -= size
        then = layout.channel(f"{sort.name}.{name}", then, (at, 8 * size))
    return then
