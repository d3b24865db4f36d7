"""An open CAN bus, in two kinds: a socket of our own, or any interface of python-can."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, REMOTE, STATE, SWITCH, CanFrame
from bridges.media.can.clock import stamp_of
from bridges.media.can.inbox import DONTWAIT, SO_RXQ_OVFL, SO_TIMESTAMPNS, Arrived, OneByOne
from bridges.media.can.slcan import BufferedLine, socket_of
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.source import Heard, source_of
from bridges.media.can.state import FILTER, State
from bridges.packed import Packed
from bus.errors import words_of
from bus.machine.holders import holding_words

if TYPE_CHECKING:
    from can import BusABC, Message

FRAMES = 256  # read in one wake-up
_RECEIVE_BYTES = 4 << 20  # a busy bus brings 3 MB a second, as the kernel counts, and a machine stands still
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h; not in `socket`
_SOL_CAN_RAW, _CAN_RAW_ERR_FILTER, _CAN_RAW_RECV_OWN_MSGS, _CAN_RAW_FD_FRAMES = 101, 2, 4, 5
_ARPHRD_CAN, _IFF_UP = 280, 1
_NET = Path("/sys/class/net")

Stamped = tuple[CanFrame, int]
"""A frame, and when it came: in ns since 1970."""


class Arrivals(NamedTuple):
    """The frames that were read, whether more may be waiting, and why the bus is lost ("" if it is not).

    `stamps_ns` are the times at which each frame came, in ns since 1970, of the kernel or the adapter; () if
    they are not known.
    """

    frames: Sequence[CanFrame]
    more: bool
    fault: str
    stamps_ns: Sequence[int]


class Port(Protocol):
    """An open bus. If it `confirms`, `read` returns our own frames too, marked `OWN`, when they were sent."""

    confirms: bool
    overruns: int  # frames lost since it was last set to 0

    @property
    def is_alone(self) -> bool:
        """Whether it is known that nobody else is on the bus."""

    def fileno(self) -> int | None:
        """Return the descriptor to wait on, or None if the interface has none."""

    def read(self, unreadable: Callable[[], bool]) -> Arrivals:
        """Read up to 256 frames without waiting. `unreadable()` counts a bad input: True after too many."""

    def take_heard(self) -> Heard | None:
        """Return what came since the last call; None if the port knows of frames only."""

    def write(self, frame: CanFrame) -> None:
        """Send one frame. Raises `OSError` with an errno, which is EAGAIN if the driver gave none."""

    def write_some(self, frames: Sequence[CanFrame]) -> int:
        """Send some of these frames, in order. Return how many, at least 1. Raises `OSError` like `write`."""

    def state(self) -> State:
        """Return the state that the interface reports, or `unknown` if it reports none."""

    def close(self) -> None: ...


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
            carrier = (_NET / self._interface / "carrier").read_text().strip()
            return "error-active" if carrier == "1" else "bus-off"
        return "unknown"


def trouble(interface: str) -> str:
    """Return why SocketCAN cannot use an interface now, and what to do about it; "" if it can."""
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
    except OSError as error:
        return explained(error, interface)
    try:
        flags = int((_NET / interface / "flags").read_text(), 16)
        kind = int((_NET / interface / "type").read_text())
    except (OSError, ValueError):
        return f"no interface {interface}: run ip link to see the names; load the driver of the adapter"
    if kind != _ARPHRD_CAN:
        return f"{interface} is no CAN interface: run ip link to see the names"
    if not flags & _IFF_UP:
        return explained(OSError(errno.ENETDOWN, f"{interface} is down"), interface)
    return ""


def explained(error: OSError, interface: str) -> str:
    """Return what went wrong on a SocketCAN interface, and what to do about it if that is known."""
    advice = {
        errno.EAFNOSUPPORT: "the kernel has no CAN: run modprobe -a can can_raw",
        errno.ENODEV: "run ip link to see the names",
        errno.ENETDOWN: f"run ip link set {interface} up type can bitrate 500000, with its bit rate",
    }.get(error_number(error) or 0)
    if interface.startswith("/"):
        return holding_words(error, interface)
    return f"{words_of(error)}: {advice}" if advice else words_of(error)


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


class BusPort:
    """Any interface of python-can. It does not confirm when a frame was sent.

    `waits`: the interface may wait in `recv` also if it is asked not to, so a thread must read it.
    """

    confirms = False

    def __init__(self, bus: "BusABC", waits: bool = False) -> None:
        from can import BusABC, Message
        from can import BusState as Told

        self._bus, self._message = bus, Message
        self._tells = getattr(type(bus), "state", None) not in (None, BusABC.state)
        self._states: dict[Any, State] = {
            Told.ACTIVE: "error-active",
            Told.PASSIVE: "error-passive",
            Told.ERROR: "bus-off",
        }
        self._source, self._waits = source_of(bus), waits
        self._line = self._source if isinstance(self._source, BufferedLine) else None
        self.overruns = 0
        if (number := self.fileno()) is not None:
            with contextlib.suppress(OSError), socket_of(number) as sock:
                widen(sock)

    @property
    def is_alone(self) -> bool:
        """Whether no other bus of this process has opened the channel: those of `virtual` reach no other."""
        from can.interfaces.virtual import VirtualBus

        return isinstance(self._bus, VirtualBus) and len(self._bus.channel) == 1

    def fileno(self) -> int | None:
        if self._waits:
            return None
        try:
            number = int((self._source or self._bus).fileno())
        except Exception:  # interfaces without a descriptor raise different exceptions
            return None
        return number if number >= 0 else None

    @property
    def ended(self) -> str:
        """The reason why no frame will ever come again, kept by the driver; "" if one may come."""
        return "" if self._source is None else self._source.ended

    def take_heard(self) -> Heard | None:
        return None if self._source is None else self._source.take_heard()

    def receive(self, timeout_s: float) -> Stamped | None:
        """Wait up to `timeout_s` for the next frame; return it or None. Raises whatever the driver raises."""
        message = self._bus.recv(timeout_s)
        if message is None:
            return None
        if self._source is not None:
            self._source.note_frame()
        return frame_of(message), stamp_of(message.timestamp, time.time_ns())

    def read(self, unreadable: Callable[[], bool]) -> Arrivals:
        frames, stamps_ns = list[CanFrame](), list[int]()
        for _ in range(FRAMES):
            try:
                found = self.receive(0)
            except Exception as error:  # an interface may raise any exception for a line that it cannot parse
                if is_loss(error):
                    return Arrivals(frames, False, self.ended or loss(error), stamps_ns)
                if unreadable():
                    return Arrivals(frames, False, loss(error), stamps_ns)
                continue
            if found is not None:
                frames.append(found[0])
                stamps_ns.append(found[1])
            elif not (self._line and self._line.left):
                return Arrivals(frames, False, "" if frames else self.ended, stamps_ns)
        return Arrivals(frames, True, "", stamps_ns)

    def write(self, frame: CanFrame) -> None:
        self.deliver(frame, 0)

    def write_some(self, frames: Sequence[CanFrame]) -> int:
        self.deliver(frames[0], 0)
        return 1

    def deliver(self, frame: CanFrame, timeout_s: float) -> None:
        """Send one frame, waiting at most `timeout_s`. Raises `OSError` like `write`."""
        try:
            self._bus.send(message_of(frame, self._message), timeout_s)
        except Exception as error:  # a driver may raise any exception
            raise OSError(error_number(error) or errno.EAGAIN, str(error)) from error

    def state(self) -> State:
        if not self._tells:
            return "unknown"
        with contextlib.suppress(Exception):
            return self._states.get(self._bus.state, "unknown")
        return "unknown"

    def close(self) -> None:
        if self._line is not None:
            self._line.hurry()
        if self._source is not None:
            self._source.end()
        shut_down(self._bus)


def loss(error: BaseException) -> str:
    """Return the text of a link's fault for an error of python-can, without the stack that it may quote."""
    return f"lost: {words_of(error.__cause__ or error)}"


def frame_of(message: "Message") -> CanFrame:
    """Convert a message of python-can to a frame in the form of SocketCAN."""
    kind = EXTENDED if message.is_extended_id else 0
    data = message.data
    if message.is_remote_frame:
        kind |= REMOTE
        data = bytearray(min(message.dlc, 8))
    if message.is_error_frame:
        kind |= ERROR
    if not message.is_fd:
        return message.arbitration_id | kind, data, 0
    switch = SWITCH if message.bitrate_switch else 0
    state = STATE if message.error_state_indicator else 0
    return message.arbitration_id | kind, data, FD | switch | state


def message_of(frame: CanFrame, make: "type[Message]") -> "Message":
    """Convert a frame to a message of python-can. A remote frame has the length of its data, and no data."""
    identifier, data, marks = frame
    remote = bool(identifier & REMOTE)
    return make(
        arbitration_id=identifier & IDENTIFIER,
        is_extended_id=bool(identifier & EXTENDED),
        is_remote_frame=remote,
        is_fd=bool(marks & FD),
        bitrate_switch=bool(marks & SWITCH),
        error_state_indicator=bool(marks & STATE),
        dlc=len(data),
        data=None if remote else data,
    )


def error_number(error: BaseException) -> int | None:
    """Return the errno of an error of python-can or of its cause; None if there is none."""
    for fault in (error, error.__cause__):
        number = getattr(fault, "error_code", None) or getattr(fault, "errno", None)
        if isinstance(number, int):
            return number
    return None


def is_loss(error: BaseException) -> bool:
    """Return whether the error means that the device is gone; otherwise the input was not a CAN frame."""
    return (
        isinstance(error, OSError) or isinstance(error.__cause__, OSError) or error_number(error) is not None
    )


def shut_down(bus: Any) -> None:
    """Close a bus. Suppresses all exceptions, because a driver may raise any when the device is gone."""
    with contextlib.suppress(Exception):
        bus.shutdown()
    with contextlib.suppress(Exception):  # slcan: shutdown() fails before this if the adapter is gone
        bus.serialPortOrig.close()
