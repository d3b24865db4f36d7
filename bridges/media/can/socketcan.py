"""SocketCAN's frames as they lie in memory: struct can_frame and canfd_frame (linux/can.h), no I/O.

Byte order is the machine's. 16 bytes: identifier u32, length u8, 3 bytes, data 8. 72 bytes: identifier
u32, length u8, flags u8, 2 bytes, data 64. The identifier's top bits are `EXTENDED`, `REMOTE`, `ERROR`.
"""

from struct import Struct

EXTENDED, REMOTE, ERROR = 1 << 31, 1 << 30, 1 << 29
KINDS = EXTENDED | REMOTE | ERROR
IDENTIFIER = (1 << 29) - 1
CLASSIC_BYTES, FD_BYTES = 16, 72

FD, OWN = 1, 2
"""Marks of a frame: it has CAN FD's format; this very socket sent it."""

Frame = tuple[int, bytes | bytearray, int]
"""Identifier with its top bits, data, marks."""

_CLASSIC, _FD = Struct("=IB3x8s"), Struct("=IBB2x64s")
_BITRATE_SWITCH = 0x01
_pack_classic, _pack_fd = _CLASSIC.pack, _FD.pack
_unpack_classic, _unpack_fd = _CLASSIC.unpack, _FD.unpack


def pack_frame(identifier: int, data: bytes, fd: bool = False, switch: bool = False) -> bytes:
    """Return an extended data frame; `data` at most 8 bytes, FD 64; `switch` to the faster data rate (FD)."""
    if fd:
        return _pack_fd(identifier | EXTENDED, len(data), _BITRATE_SWITCH if switch else 0, data)
    return _pack_classic(identifier | EXTENDED, len(data), data)


def unpack_frame(raw: bytes, marks: int = 0) -> Frame | None:
    """Return the frame in `raw`; None if it is neither 16 nor 72 bytes."""
    if len(raw) == CLASSIC_BYTES:
        identifier, size, data = _unpack_classic(raw)
        return identifier, data[:size], marks
    if len(raw) == FD_BYTES:
        identifier, size, _, data = _unpack_fd(raw)
        return identifier, data[:size], marks | FD
    return None
