"""The bytes of cannelloni: format 2 of its datagrams, and version 1 of its stream. Pure.

A frame is can_id u32 (the `canid_t` of SocketCAN), length u8 with 0x80 for an FD frame, flags u8 only in an
FD frame (those of `canfd_frame`), data; big-endian. A remote frame has a length and no data. A datagram has a
header: version u8, op code u8, sequence number u8, number of frames u16. The stream has none, and begins
both ways with a greeting. Source: doc/udp_format.md and doc/tcp_protocol.md of cannelloni.
"""

from struct import Struct

from bridges.items import FD, REMOTE, STATE, SWITCH, CanFrame

GREETING = b"CANNELLONIv1"
VERSION, DATA = 2, 0
HEADER = Struct(">BBBH")
_HEAD = Struct(">IB")
_FD, _BRS, _ESI = 0x80, 0x01, 0x02
_DATA_BYTES_MAX, _CLASSIC_BYTES_MAX = 64, 8


def pack_frame(frame: CanFrame) -> bytes:
    """Return the bytes of a frame."""
    identifier, data, marks = frame
    if marks & FD:
        flags = (_BRS if marks & SWITCH else 0) | (_ESI if marks & STATE else 0)
        return _HEAD.pack(identifier, len(data) | _FD) + bytes((flags,)) + data
    return _HEAD.pack(identifier, len(data)) + (b"" if identifier & REMOTE else data)


def take_frame(data: bytes, start: int) -> tuple[CanFrame | None, int]:
    """Return the frame at `start`, and where the next one begins.

    Returns None and `start` if it is not whole yet, None and -1 if it can be none.
    """
    if len(data) - start < _HEAD.size:
        return None, start
    identifier, size = _HEAD.unpack_from(data, start)
    at, marks, length = start + _HEAD.size, 0, size & ~_FD
    if size & _FD:
        if len(data) <= at:
            return None, start
        flags = data[at]
        marks = FD | (SWITCH if flags & _BRS else 0) | (STATE if flags & _ESI else 0)
        at += 1
    if length > (_DATA_BYTES_MAX if marks else _CLASSIC_BYTES_MAX):
        return None, -1
    if identifier & REMOTE:
        return (identifier, bytes(length), marks), at
    if len(data) - at < length:
        return None, start
    return (identifier, data[at : at + length], marks), at + length
