"""The memory layout of SocketCAN's frames: struct can_frame and canfd_frame (linux/can.h), no I/O.

The byte order is the machine's. A classic frame has 16 bytes: identifier u32, length u8, 3 unused bytes, data
8 bytes. An FD frame has 72 bytes: identifier u32, length u8, flags u8, 2 unused bytes, data 64 bytes. The top
bits of the identifier are `EXTENDED`, `REMOTE` and `ERROR`.
"""

from struct import Struct

EXTENDED, REMOTE, ERROR = 1 << 31, 1 << 30, 1 << 29
KINDS = EXTENDED | REMOTE | ERROR
IDENTIFIER = (1 << 29) - 1
CLASSIC_BYTES, FD_BYTES = 16, 72

FD, OWN = 1, 2
"""Marks of a frame. `FD`: it has the CAN FD format. `OWN`: it was sent by this socket."""

Frame = tuple[int, bytes | bytearray, int]
"""A frame: identifier with its top bits, data, marks."""

_CLASSIC, _FD = Struct("=IB3x8s"), Struct("=IBB2x64s")
_BITRATE_SWITCH = 0x01
_pack_classic, _pack_fd = _CLASSIC.pack, _FD.pack
_unpack_classic, _unpack_fd = _CLASSIC.unpack, _FD.unpack


def pack_frame(identifier: int, data: bytes, fd: bool = False, switch: bool = False) -> bytes:
    """Return the bytes of an extended data frame. `data` has at most 8 bytes, or 64 with `fd`.

    With `fd` and `switch` the data is sent at the faster data rate.
    """
    if fd:
        return _pack_fd(identifier | EXTENDED, len(data), _BITRATE_SWITCH if switch else 0, data)
    return _pack_classic(identifier | EXTENDED, len(data), data)


def unpack_frame(raw: bytes, marks: int = 0) -> Frame | None:
    """Return the frame in `raw`, or None if its length is neither 16 nor 72 bytes."""
    if len(raw) == CLASSIC_BYTES:
        identifier, size, data = _unpack_classic(raw)
        return identifier, data[:size], marks
    if len(raw) == FD_BYTES:
        identifier, size, _, data = _unpack_fd(raw)
        return identifier, data[:size], marks | FD
    return None
