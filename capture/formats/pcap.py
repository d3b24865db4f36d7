"""pcap and pcapng, read many packets at a time, and written for CAN: SocketCAN's link type, and ours.

Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. `packets` has what is in the packets. Needs
numpy.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from struct import Struct
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from capture import pcapng
from capture.files import CaptureError
from capture.formats.packets import CAN, FDF, HEAD, Contents, Link, Packets, octets_of
from capture.formats.source import Source
from capture.frames import CLASSIC_BYTES, FD_BYTES, Flags, Frames, Ints, Octets
from capture.pcapng import CUT, DAMAGED, Clock, Packet
from capture.schema import TIME_MAX_NS

_NAME: Final = "can0"
_SNAP: Final = 262_144
_PACKET_BYTES_MAX: Final = 1 << 24
_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1),
}  # fmt: skip
_SECTION: Final = b"\x0a\x0d\x0d\x0a"


def only() -> Callable[[str], str]:
    """Return the function from names of channels to the one name that a reader of pcap finds."""
    return lambda name: _NAME


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames | list[Packet]]:
    """Read CAN frames, and rows of captures of ours. `style` learns of pcap whether its times are in us.

    Raises `CaptureError` if the file is neither pcap nor pcapng.
    """
    magic = source.head[:4]
    if magic == _SECTION:
        return _Section(source).read()
    if magic not in _PCAP:
        raise CaptureError(f"{source.path}: not a pcap or pcapng file")
    order, step_ns = _PCAP[magic]
    style.update(step_ns=step_ns, order=order)
    return _read_pcap(source, order, step_ns)


def _read_pcap(source: Source, order: str, step_ns: int) -> Iterator[Frames | list[Packet]]:
    data, head = source.read(), Struct(f"{order}4I")
    if len(data) < 24:
        source.told.leave(CUT)
        return
    link_type = Struct(f"{order}I").unpack_from(data, 20)[0] & 0xFFFF
    contents = Contents(source.told)
    contents.links.append(Link(link_type, _NAME, order, Clock(Fraction(step_ns))))
    rest = data[24:]
    while True:
        places, times, sizes, at, end = list[int](), list[int](), list[int](), 0, len(rest)
        while at + 16 <= end:
            seconds, fraction, size, _ = head.unpack_from(rest, at)
            if size > _PACKET_BYTES_MAX:
                source.told.leave("rest behind a damaged packet")
                yield from _found(rest, places, sizes, times, contents)
                return
            if at + 16 + size > end:
                break
            places.append(at + 16)
            sizes.append(size)
            times.append(seconds * 10**9 + fraction * step_ns)
            at += 16 + size
        yield from _found(rest, places, sizes, times, contents)
        piece = source.read()
        if not piece:
            source.told.leave(CUT, int(at < end))
            return
        rest = rest[at:] + piece


def _found(
    data: bytes, places: list[int], sizes: list[int], times: list[int], contents: Contents
) -> Iterator[Frames | list[Packet]]:
    if places:
        none = np.zeros(len(places), np.int64)
        start, size, ts_ns = (np.array(column, np.int64) for column in (places, sizes, times))
        packets = Packets(octets_of(data), start, size, ts_ns, none.astype(np.bool_), none)
        yield from contents.of(packets, data)


class _Section:
    """A pcapng file that is read."""

    def __init__(self, source: Source) -> None:
        self._source, self._told = source, source.told
        self._contents = Contents(source.told)
        self._order = ""

    def read(self) -> Iterator[Frames | list[Packet]]:
        """Read all packets of all sections."""
        rest = b""
        while piece := self._source.read():
            rest += piece
            at, packets = 0, list[int]()
            while at + 12 <= len(rest):
                if rest[at : at + 4] == _SECTION:
                    yield from self._packets(rest, packets)  # of the section before, with its interfaces
                    packets = []
                    self._begin(rest[at + 8 : at + 12])
                kind, size = Struct(f"{self._order or '<'}II").unpack_from(rest, at)
                if not self._order or not 12 <= size <= _PACKET_BYTES_MAX or size % 4:
                    yield from self._packets(rest, packets)
                    self._told.leave(DAMAGED)
                    return
                if at + size > len(rest):
                    break
                at += size
                if kind == 6:
                    packets.append(at - size)
                else:
                    self._other(kind, rest[at - size + 8 : at - 4])
            yield from self._packets(rest, packets)
            rest = rest[at:]
        self._told.leave(CUT, int(bool(rest)))

    def _begin(self, magic: bytes) -> None:
        self._order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic, "")
        self._contents = Contents(self._told)

    def _other(self, kind: int, body: bytes) -> None:
        if kind == 1 and len(body) >= 8:
            found, links = pcapng.read_interface(body, self._order), self._contents.links
            name = found.name or f"can{len(links)}"
            links.append(Link(found.link_type, name, self._order, found.clock))
        elif kind in (2, 3):
            self._told.leave("packets in blocks of an old or a simple form")

    def _packets(self, data: bytes, places: list[int]) -> Iterator[Frames | list[Packet]]:
        """Yield what packets hold, by interface."""
        if not places:
            return
        octets, at, links = octets_of(data), np.array(places, np.int64), self._contents.links
        words = octets[at[:, None] + np.arange(28)].view(f"{self._order}u4").astype(np.int64)
        size, number, high, low, captured = (words[:, column] for column in (1, 2, 3, 4, 5))
        good = (captured <= size - 32) & (number < len(links))
        self._told.leave("damaged packets", int((~good).sum()))
        is_sent = self._outbound(octets, at + 28 + (captured + 3 & ~3), at + size - 4, good)
        times = np.zeros(len(at), np.int64)
        for which in np.unique(number[good]).tolist():
            mine = good & (number == which)
            ticks = high[mine].astype(np.uint64) << np.uint64(32) | low[mine].astype(np.uint64)
            times[mine], good[mine] = _times(ticks, links[which].clock)
            self._told.leave("packets of a time that no capture can hold", int((mine & ~good).sum()))
        packets = Packets(octets, at + 28, captured, times, is_sent, number).chosen(good)
        if len(packets.start):
            yield from self._contents.of(packets, data)

    def _outbound(self, octets: Octets, start: Ints, end: Ints, good: Flags) -> Flags:
        """Return which packets say in their flags that they were sent."""
        there = good & (end - start >= 8)
        at = np.where(there, start, 0)
        words = octets[at[:, None] + np.arange(8)]
        halves = words[:, :4].copy().view(f"{self._order}u2")
        flags = words[:, 4:].copy().view(f"{self._order}u4").reshape(-1)
        plain = there & (halves[:, 0] == 2) & (halves[:, 1] == 4)
        is_sent = plain & ((flags & 3) == 2)
        for one in np.flatnonzero(there & ~plain & (halves[:, 0] != 0)).tolist():
            options = dict(pcapng.options_in(octets[start[one] : end[one]].tobytes(), self._order))
            word = options.get(2, b"").ljust(4, b"\0")[:4]
            is_sent[one] = int.from_bytes(word, "little" if self._order == "<" else "big") & 3 == 2
        found: Flags = is_sent
        return found


def _times(ticks: npt.NDArray[np.uint64], clock: Clock) -> tuple[Ints, Flags]:
    """Return times in ns of ticks, and which of them a capture can hold."""
    ns, from_ns = clock.tick_ns, clock.from_ns
    if ns.denominator == 1 and 0 <= from_ns <= TIME_MAX_NS:
        fits = ticks <= np.uint64((TIME_MAX_NS - from_ns) // ns.numerator)
        return np.where(fits, ticks, 0).astype(np.int64) * ns.numerator + from_ns, fits
    found = [clock.time_ns(tick) for tick in ticks.tolist()]
    return np.array([one or 0 for one in found], np.int64), np.array([one is not None for one in found])


def _packed(frames: Frames) -> Iterator[tuple[int, int, bool, bytes]]:
    """Yield time, channel, direction and the packet of SocketCAN's link type, of each frame."""
    is_fd = frames.is_fd
    head = np.zeros((len(frames), FD_BYTES), np.uint8)
    head[:, :4] = frames.ids.astype(">u4").view(np.uint8).reshape(-1, 4)
    head[:, 4] = frames.sizes
    head[:, 5] = np.where(is_fd, frames.marks | FDF, 0)
    head[:, 7] = np.where(is_fd, 0, frames.marks)
    head[:, HEAD : HEAD + frames.data.shape[1]] = frames.data
    raw = head.tobytes()
    columns = frames.ts_ns, frames.channel, frames.is_sent, is_fd
    for at, (ts_ns, channel, is_sent, fd) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        start = at * FD_BYTES
        yield ts_ns, channel, is_sent, raw[start : start + (FD_BYTES if fd else CLASSIC_BYTES)]


class PcapWriter:
    """A writer of pcap for CAN, with times in ns or, if `style` says so, in us."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file = file
        self._step_ns = 1000 if style.get("step_ns") == 1000 else 1
        order = ">" if style.get("order") == ">" else "<"
        magic = next(key for key, value in _PCAP.items() if value == (order, self._step_ns))
        self._head = Struct(f"{order}4I").pack
        file.write(magic + Struct(f"{order}HHiIII").pack(2, 4, 0, 0, _SNAP, CAN))

    def add(self, frames: Frames) -> None:
        """Write frames."""
        parts = []
        for ts_ns, _, _, data in _packed(frames):
            seconds, ns = divmod(ts_ns, 10**9)
            parts.append(self._head(seconds & 0xFFFFFFFF, ns // self._step_ns, len(data), len(data)) + data)
        self._file.write(b"".join(parts))

    def close(self) -> None:
        """Do nothing: the file has no end of its own."""


class PcapngWriter:
    """A writer of pcapng for CAN: an interface for each channel, times in ns, directions as flags."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._places = file, dict[str, int]()
        file.write(pcapng.head())

    def add(self, frames: Frames) -> None:
        """Write frames."""
        parts = []
        for name in frames.names:
            if name not in self._places:
                self._places[name] = len(self._places)
                parts.append(pcapng.interface(name, CAN))
        places = [self._places[name] for name in frames.names]
        parts += [
            pcapng.packet(places[channel], ts_ns, data, is_sent)
            for ts_ns, channel, is_sent, data in _packed(frames)
        ]
        self._file.write(b"".join(parts))

    def close(self) -> None:
        """Do nothing: the file has no end of its own."""
