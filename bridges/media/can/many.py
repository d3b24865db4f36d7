"""Reading a raw CAN socket: many frames by one call of `recvmmsg`, which Python's `socket` does not have.

Over buffers that are made once, a call costs about as much as two of `recvmsg`, and a frame little more.
"""

import ctypes
import os
import socket
import sys
from collections.abc import Sequence
from ctypes import c_int, c_size_t, c_uint, c_void_p
from struct import Struct
from typing import Any, ClassVar, Literal, NamedTuple

from bridges.items import OWN
from bridges.media.can.inbox import CONFIRM, DONTWAIT, NOTE_BYTES, SO_RXQ_OVFL, SO_TIMESTAMPNS, Arrived
from bridges.media.can.socketcan import unpack_frames
from bridges.packed import CLASSIC_BYTES, FD_BYTES, STRIDE, Lazy, Packed

SLOTS = 128
_NOTE = Struct("@NiiI")  # struct cmsghdr, and the count of SO_RXQ_OVFL
_STAMP = Struct("@Niill0N")  # struct cmsghdr, and the struct timespec of SO_TIMESTAMPNS
_AT = Struct("@N").size  # where the kind of a note begins
_KIND = slice(_AT, _AT + 8)
_STAMP_ROW = Struct(f"@{_AT + 8}xll{NOTE_BYTES - _STAMP.size}x")
_STAMPED = socket.SOL_SOCKET, SO_TIMESTAMPNS
_STAMPED_RAW = Struct("@ii").pack(*_STAMPED)
_SECOND_NS = 1_000_000_000


class Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", c_void_p), ("size", c_size_t))


class Header(ctypes.Structure):
    """struct mmsghdr (recvmmsg(2)), flat."""

    _fields_ = (
        ("name", c_void_p),
        ("name_bytes", c_uint),
        ("vectors", c_void_p),
        ("vector_count", c_size_t),
        ("notes", c_void_p),
        ("note_bytes", c_size_t),
        ("flags", c_int),
        ("_padding", c_uint * (sys.maxsize >> 32 & 1)),  # on 64 bits struct msghdr is aligned to 8
        ("size", c_uint),
    )


_HEADER_BYTES = ctypes.sizeof(Header)
_TOLD = slice(Header.note_bytes.offset, _HEADER_BYTES)
"""The part of a header that a call fills in: the size of the notes, the flags and the size of a frame."""
_ALIKE_MOST = 16


def _column(headers: bytearray, field: Any, form: Literal["I", "N"]) -> memoryview:
    """Return a field of all headers, as numbers of 4 bytes, or as those of a size."""
    numbers: memoryview = memoryview(headers).cast(form)  # type: ignore[arg-type]  # typeshed lacks N
    return numbers[field.offset // numbers.itemsize :: _HEADER_BYTES // numbers.itemsize]


class NotedTimes(Lazy[int]):
    """Times of frames in ns since 1970, which are read out of their notes where somebody looks at them."""

    __slots__ = ("_notes",)

    def __init__(self, notes: bytes) -> None:
        super().__init__()
        self._notes = notes

    def __len__(self) -> int:
        return len(self._notes) // NOTE_BYTES

    def _make(self) -> list[int]:
        rows = _STAMP_ROW.iter_unpack(self._notes)
        return [seconds * _SECOND_NS + rest_ns for seconds, rest_ns in rows]


class _Alike(NamedTuple):
    """The headers behind a call whose frames are all of `size`, with notes of so many bytes, or all `own`."""

    headers: bytes
    size: int
    own: int
    note_bytes: int
    is_frame: bool


class Many:
    """An inbox of `SLOTS` places, filled by one call."""

    slots: ClassVar[int] = SLOTS

    def __init__(self, sock: socket.socket) -> None:
        self._fd = sock.fileno()
        self._call = ctypes.CDLL(None, use_errno=True).recvmmsg
        self._call.argtypes = (c_int, c_void_p, c_uint, c_int, c_void_p)
        self._data, self._notes = bytearray(SLOTS * FD_BYTES), bytearray(SLOTS * NOTE_BYTES)
        self._vectors = (Vector * SLOTS)()
        self._headers = bytearray(SLOTS * _HEADER_BYTES)
        self._lay_out()
        self._fresh, self._used = bytes(self._headers), 0
        self._alike: dict[bytes, _Alike] = {}
        self._all_data, self._all_notes = memoryview(self._data), memoryview(self._notes)
        self._sizes = _column(self._headers, Header.size, "I")
        self._flags = _column(self._headers, Header.flags, "I")
        self._note_sizes = _column(self._headers, Header.note_bytes, "N")

    def _lay_out(self) -> None:
        headers = (Header * SLOTS).from_buffer(self._headers)
        data, notes = map(address_of, (self._data, self._notes))
        for n, (vector, header) in enumerate(zip(self._vectors, headers, strict=True)):
            vector.base, vector.size = data + n * FD_BYTES, FD_BYTES
            header.vectors, header.vector_count = ctypes.addressof(vector), 1
            header.notes, header.note_bytes = notes + n * NOTE_BYTES, NOTE_BYTES
        self._place = ctypes.addressof(headers)

    def read(self) -> Arrived:
        """Return what has come, up to `SLOTS` frames. Raises `OSError`: EAGAIN if there are none."""
        headers, used = self._headers, self._used
        headers[:used] = self._fresh[:used]
        count = self._call(self._fd, self._place, SLOTS, DONTWAIT, None)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        used = self._used = count * _HEADER_BYTES
        told = bytes(headers[_TOLD])
        alike = self._alike.get(told) or self._learn(told)
        if alike.is_frame and headers[:used] == alike.headers[:used]:
            owns = self._owns(count, alike.own)
            frames = Packed(bytes(self._all_data[: count * STRIDE]), alike.size, owns)
            dropped = None if alike.note_bytes == _STAMP.size else self._dropped(count - 1)
            return Arrived(frames, self._stamps_ns(count, alike.note_bytes), dropped)
        some = unpack_frames(self._data, self._sizes[:count].tolist(), self._marks(count))
        least = min(self._note_sizes[:count].tolist())
        return Arrived(some, self._stamps_ns(count, least), self._dropped(count - 1))

    def _learn(self, told: bytes) -> "_Alike":
        """Return what a call leaves that tells the same of all frames; `told`: of the first."""
        if len(self._alike) >= _ALIKE_MOST:
            self._alike.clear()
        headers = bytearray(self._fresh)
        for at in range(0, len(headers), _HEADER_BYTES):
            headers[at + _TOLD.start : at + _TOLD.stop] = told
        first = Header.from_buffer(headers)
        own = OWN if first.flags & CONFIRM else 0
        made = _Alike(
            bytes(headers), first.size, own, first.note_bytes, first.size in (CLASSIC_BYTES, FD_BYTES)
        )
        self._alike[told] = made
        return made

    def _owns(self, count: int, own: int) -> Sequence[int]:
        """Return the marks of frames that all have the same flags."""
        return (own,) * count if own else ()

    def _marks(self, count: int) -> list[int]:
        """Return `OWN` for each frame that this socket sent, 0 for others."""
        return [OWN if flags & CONFIRM else 0 for flags in self._flags[:count].tolist()]

    def _stamps_ns(self, count: int, least: int) -> Sequence[int]:
        """Return the time in the first note of each frame; () unless all have one, of `least` bytes or more.

        The kernel tells it first, and of each frame or none.
        """
        if least < _STAMP.size or self._notes[_KIND] != _STAMPED_RAW:
            return ()
        return NotedTimes(bytes(self._all_notes[: count * NOTE_BYTES]))

    def _dropped(self, slot: int) -> int | None:
        """Return the count in the notes of a slot: the kernel tells it behind the time, if at all."""
        start, size = slot * NOTE_BYTES, self._note_sizes[slot]
        if size and _STAMP.unpack_from(self._notes, start)[1:3] == _STAMPED:
            start, size = start + _STAMP.size, max(0, size - _STAMP.size)
        if size < _NOTE.size:
            return None
        _, level, kind, count = _NOTE.unpack_from(self._notes, start)
        return int(count) if (level, kind) == (socket.SOL_SOCKET, SO_RXQ_OVFL) else None


def address_of(buffer: bytearray) -> int:
    """Return where a buffer lies, which must not move from then on."""
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
