"""The frames that findings of the audit are about: by their envelopes, or by a hash of their content.

The hash is XXH64 with Spark's seed, chained over type, tokens and payload, as `xxhash64` of Spark SQL is.
Source: the specification of XXH64 at https://github.com/Cyan4973/xxHash.
"""

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING, Final

from bus.wire.envelope import split
from bus.wire.frame import Frame, is_frame, unpack
from capture.schema import Kind

if TYPE_CHECKING:
    from capture.pcapng import Packet

_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK: Final = (1 << 64) - 1
_SEED: Final = 42
_LANES: Final = Struct("<4Q")


def _left(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def _round(lane: int, word: int) -> int:
    return _left(lane + word * _P2, 31) * _P1 & _MASK


def _stripes(data: bytes, seed: int) -> int:
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for words in _LANES.iter_unpack(data[: len(data) // 32 * 32]):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    found = sum(_left(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return found


def xxh64(data: bytes, seed: int) -> int:
    """Return the XXH64 of some bytes."""
    found = (_stripes(data, seed) if len(data) >= 32 else seed + _P5) + len(data) & _MASK
    at = len(data) // 32 * 32
    while at + 8 <= len(data):
        found = _left(found ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * _P1 + _P4 & _MASK
        at += 8
    if at + 4 <= len(data):
        found ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        found = _left(found, 23) * _P2 + _P3 & _MASK
        at += 4
    for byte in data[at:]:
        found = _left(found ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def of_content(frame: Frame) -> int:
    """Return the key by which the audit knows the content of a frame."""
    found = xxh64(frame.type.to_bytes(4, "little"), _SEED)
    for token in frame.tokens:
        found = xxh64(token.to_bytes(8, "little"), found)
    return _signed(xxh64(bytes(frame.data), found))


def _signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def said(rows: "Iterable[Packet]") -> dict[int, bytes]:
    """Return the data of all recorded frames by the keys that the audit may know them by."""
    found = dict[int, bytes]()
    for row in rows:
        parts = split(row.message) if row.kind == Kind.FRAME else None
        if parts is not None and is_frame(parts[1]):
            frame = unpack(parts[1])
            found[of_content(frame)] = bytes(frame.data)
            if parts[0] is not None:
                found[_signed(parts[0].key)] = bytes(frame.data)
    return found
