"""The packets of pcap and pcapng, and what is in them: CAN frames, and rows of ours. Needs numpy.

Sources: the link types of tcpdump.org. A packet of link type 227 is the CAN identifier as u32 big-endian,
length u8, flags u8 (0x04: an FD frame), u8, length code u8, and the data. Cooked packets of Linux (113, 276)
have such frames behind their own header, in the byte order of the machine. What a capture of ours wrote, of
link type 147, comes as rows.

Two faults of writers are known, and mended: scapy writes identifiers of link type 227 in the order of the
machine, and some kernels and tools leave in the three bytes behind the length whatever was there.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bus.wire.identifier import ERROR, IDENTIFIER, REMOTE
from capture import pcapng
from capture.formats.source import LeftOut
from capture.frames import (
    CLASSIC_BYTES,
    CLASSIC_DATA,
    FD_BYTES,
    FD_DATA,
    FD_FLAGS,
    STATE,
    SWITCH,
    TOO_LONG,
    Flags,
    Frames,
    Ints,
    Octets,
    Words,
    are_too_long,
    codes_of,
)
from capture.pcapng import LINKTYPE_USER0, Clock, Packet

CAN, SLL, SLL2 = 227, 113, 276
FDF: Final = 0x04
HEAD: Final = 8
"""The bytes in front of the data of a frame."""
_XL: Final = 0x80
_ERRORS: Final = 0xFFF
"""The sorts of errors that the identifier of an error frame may tell, and some to come."""
# Bytes of the header; where packet type and protocol are.
_COOKED: Final = {
    SLL: (16, 0, 14),
    SLL2: (20, 10, 0),
}
_TURNED: Final = "CAN frames whose identifiers are in the byte order of a machine, as scapy has them: read so"
_PROTOCOLS: Final = (0x000C, 0x000D)
_OUTGOING: Final = 4


class Packets(NamedTuple):
    """Packets: where they begin in `octets`, how long they are, when, their direction, and their interface in
    a list of such."""

    octets: Octets
    start: Ints
    size: Ints
    ts_ns: Ints
    is_sent: Flags
    channel: Ints

    def chosen(self, which: npt.NDArray[np.generic]) -> "Packets":
        """Return some of the packets."""
        return Packets._make([self.octets, *(column[which] for column in self[1:])])


class Link(NamedTuple):
    """An interface. `order` is the byte order of the machine that wrote the file."""

    link_type: int
    name: str
    order: str
    clock: Clock


def octets_of(data: bytes) -> Octets:
    """Return bytes as a column, with as many behind them as the longest frame has."""
    return np.frombuffer(data + bytes(FD_BYTES + 32), np.uint8)


class Contents:
    """The contents of packets of the interfaces `links` of a file, or of a section of one."""

    def __init__(self, told: LeftOut) -> None:
        self.links: list[Link] = []
        self._told, self._are_turned = told, False

    def of(self, packets: Packets, data: bytes) -> Iterator[Frames | list[Packet]]:
        """Yield what packets hold: of CAN together, in the order of the file, of all else by interface."""
        types = np.array([link.link_type for link in self.links])[packets.channel]
        if (types == CAN).any():
            yield from self._frames(packets.chosen(types == CAN))
        if (types == LINKTYPE_USER0).any():
            yield from _rows(packets.chosen(types == LINKTYPE_USER0), self.links, data, self._told)
        others = (types != CAN) & (types != LINKTYPE_USER0)
        for number in np.unique(packets.channel[others]).tolist():
            yield from _of_link(packets.chosen(packets.channel == number), self.links[number], self._told)

    def _frames(self, packets: Packets) -> Iterator[Frames]:
        """Yield CAN frames. A byte order that was seen once is that of all later ones, too."""
        self._are_turned = self._are_turned or _are_turned(packets)
        self._told.note(_TURNED, len(packets.start) if self._are_turned else 0)
        order, names = "<u4" if self._are_turned else ">u4", [link.name for link in self.links]
        yield from _some(_frames_of(packets, names, order, self._told))


def _rows(packets: Packets, links: list[Link], data: bytes, told: LeftOut) -> Iterator[list[Packet]]:
    """Yield the rows of a capture of ours."""
    columns = (column.tolist() for column in (packets.channel, packets.start, packets.size, packets.ts_ns))
    rows = [
        row
        for channel, start, size, ts_ns in zip(*columns, strict=True)
        if (row := pcapng.decode(ts_ns, links[channel].name, data[start : start + size]))
    ]
    told.leave("packets of our link type that are no rows", len(packets.start) - len(rows))
    if rows:
        yield rows


def _of_link(packets: Packets, link: Link, told: LeftOut) -> Iterator[Frames]:
    """Yield what packets of one interface hold, which is cooked."""
    if link.link_type in _COOKED:
        for part, name in _cooked(packets, link, told):
            yield from _some(_frames_of(part, [name], f"{link.order}u4", told))
    else:
        told.leave(f"packets of link type {link.link_type}, which is not CAN", len(packets.start))


def _some(frames: Frames) -> Iterator[Frames]:
    if len(frames):
        yield frames


def _cooked(packets: Packets, link: Link, told: LeftOut) -> Iterator[tuple[Packets, str]]:
    """Yield the CAN frames of a cooked capture of Linux, by interface where it tells that."""
    head, type_at, protocol_at = _COOKED[link.link_type]
    octets, start = packets.octets, packets.start
    is_old = link.link_type == SLL
    protocol = octets[start + protocol_at].astype(np.int64) << 8 | octets[start + protocol_at + 1]
    kind = octets[start + type_at + is_old]
    is_can = np.isin(protocol, _PROTOCOLS) & (packets.size >= head)
    told.leave("cooked packets that are not CAN", int((~is_can).sum()))
    index = np.zeros(len(start), np.int64)
    if not is_old:
        for place in range(4, 8):
            index = index << 8 | octets[start + place]
    found = packets._replace(
        start=start + head, size=packets.size - head, is_sent=kind == _OUTGOING, channel=index * 0
    )
    for number in np.unique(index[is_can]).tolist():
        yield found.chosen(is_can & (index == number)), link.name if is_old else f"if{number}"


def _heads(packets: Packets, size: int) -> Octets:
    """Return the first bytes of packets, and what is behind those that are shorter."""
    places = packets.start[:, None] + np.arange(size)
    found: Octets = packets.octets[np.minimum(places, len(packets.octets) - 1)]
    return found


def _ids(heads: Octets, order: str) -> Words:
    return np.ascontiguousarray(heads[:, :4]).view(order).reshape(-1).astype(np.uint32)


def _are_turned(packets: Packets) -> bool:
    """Return whether identifiers make sense in little-endian order alone."""
    if not _may_be_odd(_ids(_heads(packets, 4), ">u4")).any():
        return False  # at once, as of most files
    heads, places = _heads(packets, CLASSIC_BYTES), np.arange(CLASSIC_BYTES)
    is_plain = (packets.size >= HEAD) & (heads[:, 4] <= FD_DATA)
    has_data = ((heads != 0) & (places >= HEAD) & (places < packets.size[:, None])).any(axis=1)
    big, little = (_are_odd(_ids(heads, order), has_data) & is_plain for order in (">u4", "<u4"))
    return bool(big.any() and not little.any())


def _may_be_odd(ids: Words) -> Flags:
    found: Flags = are_too_long(ids) | ((ids & np.uint32(REMOTE | ERROR)) != 0)
    return found


def _are_odd(ids: Words, has_data: Flags) -> Flags:
    """Return which identifiers no frame has: remote ones have no data."""
    is_remote, is_error = ((ids & np.uint32(mark)) != 0 for mark in (REMOTE, ERROR))
    is_none = are_too_long(ids) | (is_remote & has_data)
    found: Flags = np.where(is_error, (ids & np.uint32(IDENTIFIER)) > _ERRORS, is_none)
    return found


def _frames_of(packets: Packets, names: list[str], order: str, told: LeftOut) -> Frames:
    """Return the CAN frames in packets of SocketCAN's link type, whose identifiers have a byte order."""
    captured, head = packets.size, _heads(packets, HEAD)
    ids, sizes = _ids(head, order), head[:, 4]
    is_unset = (captured <= CLASSIC_BYTES) & ((head[:, 5] > FD_FLAGS) | (head[:, 6] != 0))
    flags, codes = (np.where(is_unset, 0, head[:, place]).astype(np.uint8) for place in (5, 7))
    is_fd: Flags = ((flags & FDF) != 0) | (sizes > CLASSIC_DATA) | (captured >= FD_BYTES)
    good = (captured >= HEAD + sizes.astype(np.int64)) & (packets.ts_ns >= 0)
    good &= sizes <= np.where(is_fd, FD_DATA, CLASSIC_DATA)
    is_xl, is_long = (captured > 4) & (sizes >= _XL), good & are_too_long(ids)
    told.leave("CAN XL frames", int(is_xl.sum()))
    told.leave("packets that are no whole CAN frame", int((~good & ~is_xl).sum()))
    told.leave(TOO_LONG, int(is_long.sum()))
    good &= ~is_xl & ~is_long
    marks = np.where(is_fd, flags & (SWITCH | STATE), codes_of(codes, sizes)).astype(np.uint8)
    some = packets.chosen(good)
    data = _data(some, sizes[good])
    return Frames(
        some.ts_ns, some.channel, some.is_sent, ids[good], sizes[good], marks[good], is_fd[good], data, names
    )


def _data(packets: Packets, sizes: Octets) -> Octets:
    """Return the data of frames of these lengths."""
    width = FD_DATA if len(sizes) and sizes.max() > CLASSIC_DATA else CLASSIC_DATA
    found: Octets = _heads(packets, HEAD + width)[:, HEAD:]
    return np.where(np.arange(width) < sizes[:, None], found, 0).astype(np.uint8)
