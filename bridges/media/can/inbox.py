"""Reading a raw CAN socket one frame at a time, where `recvmmsg` cannot be called: without `ctypes`."""

import socket
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, ClassVar, NamedTuple

from bridges.items import OWN, CanFrame
from bridges.media.can.socketcan import unpack_frame
from bridges.packed import FD_BYTES

CONFIRM, DONTWAIT = int(socket.MSG_CONFIRM), int(socket.MSG_DONTWAIT)  # an IntFlag takes 1 us for an `&`
NOTE_BYTES = 64
SO_TIMESTAMPNS, SO_RXQ_OVFL = 35, 40  # asm-generic/socket.h; not in `socket`
_COUNTER, _TIME = Struct("=I"), Struct("@ll")
_SECOND_NS = 1_000_000_000


class Arrived(NamedTuple):
    """The frames of one call, None for each that cannot be read, and how many the kernel has dropped so far.

    The latter is None while the kernel does not tell it. `stamps_ns` are the times at which the kernel had
    each frame, since 1970; () if it does not tell.
    """

    frames: Sequence[CanFrame | None]
    stamps_ns: Sequence[int]
    dropped: int | None = None


def noted(notes: Iterable[tuple[int, int, bytes]]) -> tuple[Sequence[int], int | None]:
    """Return the `stamps_ns` and `dropped` of `Arrived` that the notes of `recvmsg` tell of one frame."""
    dropped: int | None = None
    stamps_ns: tuple[int, ...] = ()
    for level, kind, value in notes:
        if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL and len(value) == _COUNTER.size:
            (dropped,) = _COUNTER.unpack(value)
        elif level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) == _TIME.size:
            seconds, rest_ns = _TIME.unpack(value)
            stamps_ns = (seconds * _SECOND_NS + rest_ns,)
    return stamps_ns, dropped


class OneByOne:
    """An inbox that asks for one frame after the other."""

    slots: ClassVar[int] = 1

    def __init__(self, sock: Any) -> None:
        self._receive = sock.recvmsg

    def read(self) -> Arrived:
        """Return the next frame. Raises `OSError`: EAGAIN if there is none."""
        raw, notes, flags, _ = self._receive(FD_BYTES, NOTE_BYTES, DONTWAIT)
        return Arrived((unpack_frame(raw, OWN if flags & CONFIRM else 0),), *noted(notes))
