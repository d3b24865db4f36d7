"""Blocks of MDF 4, the measurement data format of ASAM: what describes records, and the bytes that hold them.

Source: ASAM MDF 4.1. A block has a head (kind, length, number of links), links to other blocks, and a body.
Data groups (DG) have channel groups (CG), one for each sort of record; those have channels (CN), some with
members. Their data are in blocks (DT, SD), packed ones (DZ), or lists of both (HL, DL). A file may be cut off
anywhere: what lies behind its end is not there. Pure; needs numpy.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from capture.formats.source import PIECE_BYTES, LeftOut

HEAD: Final = Struct("<4s4xQQ")
ID_BYTES: Final = 64
"""The size of the file's identification, in front of the first block (HD)."""
GROUP: Final = Struct("<QQHH4xII")
CHANNEL: Final = Struct("<4BIII")
PACKED: Final = Struct("<2sBxIQQ")
_CONVERSION: Final = Struct("<BBHHH2d")
_LINKS_MAX: Final = 1 << 16
_TRANSPOSED_BYTES_MAX: Final = 1 << 26
_CHANNELS_MAX: Final = 1 << 12
MASTER, VIRTUAL_MASTER, VLSD, VIRTUAL = 2, 3, 1, 6
"""Kinds of channels; VLSD's values have each a length of their own, and stand elsewhere."""
_VLSD_GROUP: Final = 0x01
_LENGTH_OPEN: Final = 0x04
CUT: Final = "block at the end that is cut off"


class Block(NamedTuple):
    """A block. `is_whole` is false if the file ends in its body."""

    kind: bytes
    links: tuple[int, ...]
    body: memoryview
    is_whole: bool


class Blocks:
    """The blocks of a file, by the byte where they begin. `is_open`: its last length was not yet written."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        flags = int.from_bytes(data[60:62], "little") if bytes(data[:8]) == b"UnFinMF " else 0
        self.is_open = bool(flags & _LENGTH_OPEN)

    def at(self, place: int, is_last: bool = False) -> Block | None:
        """Return the block there, None if there is none. `is_last`: it goes on to the end of an open file."""
        if not 0 < place <= len(self._data) - HEAD.size:
            return None
        kind, size, count = HEAD.unpack_from(self._data, place)
        begin = place + HEAD.size + 8 * count
        if count > _LINKS_MAX or size < HEAD.size + 8 * count or begin > len(self._data):
            return None
        end = len(self._data) if is_last and self.is_open else place + size
        links = Struct(f"<{count}Q").unpack_from(self._data, place + HEAD.size)
        return Block(kind, links, self._data[begin:end], end <= len(self._data))

    def described(self, place: int, kind: bytes) -> Block | None:
        """Return a block of a kind, None if it is not there as a whole."""
        found = self.at(place)
        return found if found and found.kind == kind and found.is_whole else None

    def text(self, place: int) -> str | None:
        """Return the text of a block, None if it is not there."""
        found = self.described(place, b"##TX")
        return bytes(found.body).partition(b"\0")[0].decode(errors="replace") if found else None


class Channel(NamedTuple):
    """A channel: `bits` from `byte` and `bit` of a record on, of type `form`, times `factor`, and `offset`.

    `signal` is the block of values that stand elsewhere.
    """

    name: str
    kind: int
    form: int
    bit: int
    byte: int
    bits: int
    factor: float
    offset: float
    signal: int


@dataclass(frozen=True, slots=True)
class Group:
    """A sort of records: their number in the file, their size in bytes, and their channels by name."""

    place: int
    number: int
    size: int
    is_vlsd: bool
    channels: dict[str, Channel]

    @property
    def master(self) -> Channel | None:
        """The channel with the time."""
        return next((one for one in self.channels.values() if one.kind in (MASTER, VIRTUAL_MASTER)), None)


class DataGroup(NamedTuple):
    """Records that stand together. `id_bytes` is the size of the number that each begins with."""

    groups: list[Group]
    data: int
    id_bytes: int


def began_ns(blocks: Blocks) -> int | None:
    """Return the time of the header in ns since 1970, None if the header is not there."""
    header = blocks.described(ID_BYTES, b"##HD")
    return int.from_bytes(header.body[:8], "little") if header and len(header.body) >= 8 else None


def data_groups(blocks: Blocks, told: LeftOut) -> Iterator[DataGroup]:
    """Yield the data groups. Those with a sort of records whose description is cut off are left out."""
    header, seen = blocks.described(ID_BYTES, b"##HD"), set[int]()
    place = header.links[0] if header and header.links else 0
    while place and place not in seen:
        seen.add(place)
        found = blocks.described(place, b"##DG")
        if not found or len(found.links) < 3 or not found.body:
            told.leave(CUT)
            return
        groups = _groups(blocks, found.links[1])
        if groups is None:
            told.leave("groups whose description is cut off")
        else:
            yield DataGroup(groups, found.links[2], min(found.body[0], 8))
        place = found.links[0]


def _groups(blocks: Blocks, place: int) -> list[Group] | None:
    groups: dict[int, Group] = {}
    while place and place not in groups:
        found = blocks.described(place, b"##CG")
        if not found or len(found.links) < 2 or len(found.body) < GROUP.size:
            return None
        number, _, flags, _, size, invalid = GROUP.unpack_from(found.body)
        channels: dict[int, Channel] = {}
        if not _channels(blocks, found.links[1], channels):
            return None
        by_name = {one.name: one for one in channels.values()}
        groups[place] = Group(place, number, size + invalid, bool(flags & _VLSD_GROUP), by_name)
        place = found.links[0]
    return list(groups.values())


def _channels(blocks: Blocks, place: int, found: dict[int, Channel], depth: int = 0) -> bool:
    """Add the channels of a chain, and their members. Return whether all of them are there."""
    while place and place not in found:
        block = blocks.described(place, b"##CN")
        if not block or len(block.links) < 6 or len(block.body) < CHANNEL.size or len(found) > _CHANNELS_MAX:
            return False
        members, name, conversion, signal = (block.links[number] for number in (1, 2, 4, 5))
        text, scale = blocks.text(name), _scale(blocks, conversion)
        if text is None or scale is None:
            return False
        kind, _, form, bit, byte, bits, _ = CHANNEL.unpack_from(block.body)
        found[place] = Channel(text, kind, form, bit, byte, bits, *scale, signal)
        member = blocks.at(members) if members else None
        if members and (not member or not member.is_whole):
            return False
        if (
            member
            and member.kind == b"##CN"
            and depth < 8
            and not _channels(blocks, members, found, depth + 1)
        ):
            return False
        place = block.links[0]
    return True


def _scale(blocks: Blocks, place: int) -> tuple[float, float] | None:
    """Return factor and offset of a conversion, None if it is not there. Others than linear are not used."""
    found = blocks.described(place, b"##CC") if place else None
    if not found:
        return None if place else (1.0, 0.0)
    is_linear = len(found.body) >= _CONVERSION.size + 16 and found.body[0] == 1
    offset, factor = Struct("<2d").unpack_from(found.body, _CONVERSION.size) if is_linear else (0.0, 1.0)
    return factor, offset


def content(blocks: Blocks, place: int, told: LeftOut) -> Iterator[bytes]:
    """Yield the data that begin there, unpacked, in pieces of about 1 MiB, until they end or are cut off."""
    for block in _listed(blocks, place):
        if block is None:
            told.leave(CUT)
            return
        if block.kind == b"##DZ":
            yield from _unpacked(block, told)
        elif block.kind in (b"##DT", b"##SD"):
            for begin in range(0, len(block.body), PIECE_BYTES):
                yield bytes(block.body[begin : begin + PIECE_BYTES])
        else:
            told.leave("blocks of data of an unknown kind", 1, block.kind)
            return
        if not block.is_whole:
            told.leave(CUT)
            return


def _listed(blocks: Blocks, place: int) -> Iterator[Block | None]:
    """Yield the blocks of data; None in place of one that is not there."""
    found, seen = blocks.at(place, is_last=True), {place}
    if found and found.kind == b"##HL":
        place = found.links[0] if found.links else 0
        found = blocks.at(place)
    if not found or found.kind != b"##DL":
        yield found
        return
    while found and found.kind == b"##DL":
        for link in found.links[1:]:
            yield blocks.at(link)
        place = found.links[0] if found.links else 0
        if not place or place in seen:
            return
        seen.add(place)
        found = blocks.at(place)
    yield None


def _unpacked(block: Block, told: LeftOut) -> Iterator[bytes]:
    if len(block.body) < PACKED.size:
        return
    _, method, columns, size, _ = PACKED.unpack_from(block.body)
    if method > 1 or (method and size > _TRANSPOSED_BYTES_MAX):
        told.leave("blocks that are packed in an unknown way")
        return
    pieces = _inflated(block.body[PACKED.size :], told)
    if method == 0:
        yield from pieces
        return
    whole = b"".join(_at_most(pieces, _TRANSPOSED_BYTES_MAX))
    if len(whole) == size:  # the bytes of a record are far apart: of a part, no record is whole
        rows = size // columns if columns else 0
        turned = (
            np.frombuffer(whole, np.uint8, rows * columns).reshape(columns, rows).T if rows else whole[:0]
        )
        yield bytes(turned) + whole[rows * columns :]


def _at_most(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        size -= len(piece)
        if size < 0:
            return
        yield piece


def _inflated(packed: memoryview, told: LeftOut) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    left: memoryview | bytes = packed
    try:
        while left and not unpacker.eof:
            yield unpacker.decompress(left, PIECE_BYTES)
            left = unpacker.unconsumed_tail
    except zlib.error:
        told.leave("blocks that are damaged")
