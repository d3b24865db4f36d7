"""A port on a raw CAN socket of our own: SocketCAN, or what has the form of it."""

import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, ClassVar, Protocol

from bridges.items import CanFrame
from bridges.media.can.inbox import DONTWAIT, SO_RXQ_OVFL, SO_TIMESTAMPNS, Arrived, OneByOne
from bridges.media.can.interfaces import has_carrier
from bridges.media.can.port import FRAMES, Arrivals, shut_down
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.state import FILTER, State
from bridges.packed import Packed
from bus.errors import words_of

_RECEIVE_BYTES = 4 << 20  # a busy bus brings 3 MB a second, as the kernel counts, and a machine stands still
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h; not in `socket`
_SOL_CAN_RAW, _CAN_RAW_ERR_FILTER, _CAN_RAW_RECV_OWN_MSGS, _CAN_RAW_FD_FRAMES = 101, 2, 4, 5


class Inbox(Protocol):
    """The reading half of a raw CAN socket. `slots`: the most frames that one `read` returns."""

    slots: ClassVar[int]

    def read(self) -> Arrived: ...


class Outgoing(Protocol):
    """The writing half of a raw CAN socket, for several frames at once."""

    def send(self, frames: Sequence[CanFrame]) -> int: ...


def outbox_of(sock: Any) -> Outgoing | None:
    """Return what writes many frames at once; None where the socket or the machine has another way."""
    with contextlib.suppress(ImportError, AttributeError):
        if type(sock) is socket.socket:
            from bridges.media.can.outbox import Outbox

            return Outbox(sock)
    return None


def inbox_of(sock: Any) -> Inbox:
    """Return what reads many frames at once, or one after the other if that is not possible here."""
    with contextlib.suppress(ImportError, AttributeError):  # a small Python, a C library without `recvmmsg`
        if isinstance(sock, socket.socket):
            from bridges.media.can.many import Many

            return Many(sock)
    return OneByOne(sock)


class DirectPort:
    """The base class of ports on a socket of our own: `bus` has it, and `inbox` reads it."""

    is_alone = False

    def __init__(self, bus: Any, inbox: Inbox) -> None:
        self._bus, self._socket, self._inbox = bus, bus.socket, inbox
        self._dropped = self.overruns = 0

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def read(self, unreadable: Callable[[], bool]) -> Arrivals:
        frames, stamps_ns = list[CanFrame](), list[int]()
        for _ in range(max(1, FRAMES // self._inbox.slots)):
            try:
                some, stamps, dropped = self._inbox.read()
            except (BlockingIOError, InterruptedError):
                return Arrivals(frames, False, "", stamps_ns)
            except OSError as error:
                return Arrivals(frames, False, f"lost: {words_of(error)}", stamps_ns)
            if dropped is not None:
                self._note(dropped)
            if isinstance(some, Packed) and not frames:
                return Arrivals(some, len(some) == self._inbox.slots, "", stamps)
            whole = [frame for frame in some if frame is not None]
            frames += whole
            stamps_ns += stamps if len(whole) == len(some) else compress(stamps, some)
            for _ in range(len(some) - len(whole)):
                if unreadable():
                    return Arrivals(frames, False, "lost: unreadable", stamps_ns)
            if len(some) < self._inbox.slots:
                return Arrivals(frames, False, "", stamps_ns)
        return Arrivals(frames, True, "", stamps_ns)

    def take_heard(self) -> None:
        """Return None: the kernel gives frames only."""

    def _note(self, dropped: int) -> None:
        """Count lost frames: each frame comes with the number that the kernel has dropped so far."""
        self.overruns += (dropped - self._dropped) & 0xFFFFFFFF
        self._dropped = dropped

    def close(self) -> None:
        shut_down(self._bus)


class SocketPort(DirectPort):
    """A raw SocketCAN socket on an interface. `is_alone` is False: unacknowledged, nothing is confirmed."""

    confirms = True

    def __init__(self, bus: Any, interface: str = "") -> None:
        super().__init__(bus, inbox_of(bus.socket))
        self._outbox = outbox_of(bus.socket)
        self._interface = interface

    def write(self, frame: CanFrame) -> None:
        self._socket.send(pack_frame(frame), DONTWAIT)

    def write_some(self, frames: Sequence[CanFrame]) -> int:
        if len(frames) > 1 and self._outbox is not None:
            return self._outbox.send(frames)
        for count, frame in enumerate(frames):
            try:
                self.write(frame)
            except OSError:
                if not count:
                    raise
                return count
        return len(frames)

    def state(self) -> State:
        """Return `bus-off` if the interface is up without carrier: can_bus_off() takes the carrier away."""
        with contextlib.suppress(OSError):
            return "error-active" if has_carrier(self._interface) else "bus-off"
        return "unknown"


def prepare(sock: socket.socket) -> None:
    """Set the socket's options: larger buffer, reports of overruns, times, error, own and FD frames.

    Raises `OSError` if the interface is down, because binding to it does not.
    """
    number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))
    widen(sock)
    for level, option, value in (
        (socket.SOL_SOCKET, SO_RXQ_OVFL, 1),
        (socket.SOL_SOCKET, SO_TIMESTAMPNS, 1),
        (_SOL_CAN_RAW, _CAN_RAW_ERR_FILTER, FILTER),
        (_SOL_CAN_RAW, _CAN_RAW_RECV_OWN_MSGS, 1),
        (_SOL_CAN_RAW, _CAN_RAW_FD_FRAMES, 1),
    ):
        sock.setsockopt(level, option, value)


def widen(sock: socket.socket) -> None:
    """Enlarge the receive buffer: the default is too small for the frames of one long classic transfer."""
    for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):
        with contextlib.suppress(OSError):
            return sock.setsockopt(socket.SOL_SOCKET, option, _RECEIVE_BYTES)
