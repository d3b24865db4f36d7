"""Writing to a raw CAN socket: many frames by one call of `sendmmsg`, which Python's `socket` lacks."""

import ctypes
import os
import socket
from collections.abc import Sequence
from ctypes import c_int, c_uint, c_void_p
from typing import ClassVar

from bridges.items import CanFrame
from bridges.media.can.inbox import DONTWAIT
from bridges.media.can.many import Header, Vector, address_of
from bridges.media.can.socketcan import pack_rows
from bridges.packed import CLASSIC_BYTES, FD_BYTES


class Outbox:
    """The writing half of a raw CAN socket, with places for `SLOTS` frames, which are made once."""

    SLOTS: ClassVar[int] = 128

    def __init__(self, sock: socket.socket) -> None:
        self._fd = sock.fileno()
        self._call = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._call.argtypes = (c_int, c_void_p, c_uint, c_int)
        self._data, self._sizes = bytearray(self.SLOTS * FD_BYTES), [CLASSIC_BYTES] * self.SLOTS
        self._vectors, self._headers = (Vector * self.SLOTS)(), (Header * self.SLOTS)()
        start = address_of(self._data)
        for n, (vector, header) in enumerate(zip(self._vectors, self._headers, strict=True)):
            vector.base, vector.size = start + n * FD_BYTES, CLASSIC_BYTES
            header.vectors, header.vector_count = ctypes.addressof(vector), 1
        self._place = ctypes.addressof(self._headers)

    def send(self, frames: Sequence[CanFrame]) -> int:
        """Send frames in order, at most `SLOTS`. Return how many the driver took.

        Raises `OSError` if it took none.
        """
        rows, sizes = pack_rows(frames if len(frames) <= self.SLOTS else frames[: self.SLOTS])
        self._data[: len(rows)] = rows
        if sizes != self._sizes[: len(sizes)]:
            self._resize(sizes)
        count = self._call(self._fd, self._place, len(sizes), DONTWAIT)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(count)

    def _resize(self, sizes: Sequence[int]) -> None:
        self._sizes[: len(sizes)] = sizes
        for vector, size in zip(self._vectors, sizes, strict=False):
            vector.size = size
