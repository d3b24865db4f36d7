"""A port on any interface of python-can, and its messages as frames."""

import contextlib
import errno
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, REMOTE, STATE, SWITCH, CanFrame
from bridges.media.can.clock import stamp_of
from bridges.media.can.interfaces import error_number
from bridges.media.can.own_socket import widen
from bridges.media.can.port import FRAMES, Arrivals, Stamped, shut_down
from bridges.media.can.slcan import BufferedLine, socket_of
from bridges.media.can.source import SourceInput, source_of
from bridges.media.can.state import State
from bus.errors import words_of

if TYPE_CHECKING:
    from can import BusABC, Message


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

    def take_heard(self) -> SourceInput | None:
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


def is_loss(error: BaseException) -> bool:
    """Return whether the error means that the device is gone; otherwise the input was not a CAN frame."""
    return (
        isinstance(error, OSError) or isinstance(error.__cause__, OSError) or error_number(error) is not None
    )
