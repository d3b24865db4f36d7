"""The memory layout of SocketCAN's frames: struct can_frame and canfd_frame (linux/can.h), no I/O.

The byte order is the machine's. A classic frame has 16 bytes: identifier u32, length u8, 2 unused bytes,
length code u8 (9 to 15, of a frame of 8 bytes that has such a code), data 8 bytes. An FD frame has 72 bytes:
identifier u32, length u8, flags u8, 2 unused bytes, data 64 bytes. The top bits of the identifier are those
of `bridges.items`.
"""

from collections.abc import Sequence
from struct import Struct

from bridges.items import FD, CanFrame
from bridges.packed import CLASSIC_BYTES, FD_BYTES, FLAGS, MARKS, ROWS, STRIDE, Packed

_CLASSIC, _FD = Struct("=IB2xB8s"), Struct("=IBB2x64s")
_CLASSIC_ROW, _FD_ROW = ROWS[CLASSIC_BYTES], ROWS[FD_BYTES]
_pack_classic, _pack_fd = _CLASSIC.pack, _FD.pack
_unpack_classic, _unpack_fd = _CLASSIC.unpack, _FD.unpack


def pack_frame(frame: CanFrame) -> bytes:
    """Return the bytes of a frame, whose data are at most 8 bytes, or 64 with the mark `FD`.

    With `SWITCH` its data are sent at the data bit rate; `STATE` is kept as it is.
    """
    identifier, data, marks = frame
    if marks & FD:
        return _pack_fd(identifier, len(data), FLAGS[marks & 15], data)
    return _pack_classic(identifier, len(data), marks >> 4, data)


def pack_rows(frames: Sequence[CanFrame]) -> tuple[bytes, list[int]]:
    """Return what `pack_frame` does for each frame, 72 bytes apart, and the size of each."""
    if isinstance(frames, Packed):
        return frames.data, [frames.size] * len(frames)
    rows = [
        _FD_ROW.pack(identifier, len(data), FLAGS[marks & 15], data)
        if marks & FD
        else _CLASSIC_ROW.pack(identifier, len(data), marks >> 4, data)
        for identifier, data, marks in frames
    ]
    return b"".join(rows), [FD_BYTES if marks & FD else CLASSIC_BYTES for _, _, marks in frames]


def unpack_frame(raw: bytes, marks: int = 0) -> CanFrame | None:
    """Return the frame in `raw`, or None if its length is neither 16 nor 72 bytes."""
    if len(raw) == CLASSIC_BYTES:
        identifier, size, code, data = _unpack_classic(raw)
        if code and size == 8 < code < 16:
            marks |= code << 4
        return identifier, data[:size], marks
    if len(raw) == FD_BYTES:
        identifier, size, flags, data = _unpack_fd(raw)
        return identifier, data[:size], marks | MARKS[flags]
    return None


def unpack_frames(
    data: bytes | bytearray, sizes: Sequence[int], owns: Sequence[int]
) -> Sequence[CanFrame | None]:
    """Return what `unpack_frame` does for each frame: they lie 72 bytes apart, and are `sizes` bytes long."""
    count = len(sizes)
    if sizes and sizes[0] in (CLASSIC_BYTES, FD_BYTES) and sizes.count(sizes[0]) == count:
        return Packed(bytes(memoryview(data)[: STRIDE * count]), sizes[0], owns)
    places = range(0, STRIDE * count, STRIDE)
    return [
        unpack_frame(bytes(data[at : at + size]), own)
        for at, size, own in zip(places, sizes, owns, strict=True)
    ]
