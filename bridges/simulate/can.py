"""A simulated CAN bus: arbitration by identifier, bit rates, error counters, bus-off (ISO 11898-1)."""

import copy
import errno
from asyncio import AbstractEventLoop
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.can.spoken import CanSpoken
from bridges.simulate.loop import Bell, SimulationError
from bridges.simulate.wire import Faults, Path, Wire, WireEnd, settings, trouble

if TYPE_CHECKING:
    from can import BusABC, BusState, Message

    from bridges.protocols.protocol import Protocol

_TX_FRAMES = 128  # that the driver queues before it returns ENOBUFS
_RX_FRAMES = 65536
_PASSIVE, _OFF = 128, 256  # error counts from which a node is error-passive, and bus-off
_TX_ERROR = 8
# error classes and details of linux/can/error.h
_ERR_CONTROLLER, _ERR_BUS_OFF, _ERR_RESTARTED, _ERR_COUNTERS = 0x004, 0x040, 0x100, 0x200
_DETAIL = {"active": 0x40, "passive": 0x20}

State = Literal["active", "passive", "off"]


class CanWire(Wire):
    """A CAN bus on which `corruption` destroys a frame on the wire: every node sees an error frame.

    The sender's error counter grows by 8 and it retransmits, until it is error-passive and finally bus-off.
    The other faults act between the wire and one receiver. A bus-off node recovers after `restart_s`, or with
    None only by `CanPort.restart()`. With `stuck = True` nothing can be sent.
    """

    def __init__(
        self,
        bitrate: int = 500_000,
        data_bitrate: int = 2_000_000,
        restart_s: float | None = 0.1,
        seed: int = 0,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(seed, faults)
        self.bitrate, self.data_bitrate, self.restart_s = bitrate, data_bitrate, restart_s
        self.ports: list[CanPort] = []
        self._busy = False

    def port(self, name: str = "", fd: bool = True) -> "CanPort":
        """Add a controller to the bus. Without `fd` it ignores FD frames."""
        made = CanPort(self, name or f"can{len(self.ports)}", fd)
        self.ports.append(made)
        return made

    def link(self, node: int, name: str = "", fd: bool = False, **options: Any) -> "SimulatedCan":
        """Return a `CanLink` on a port of its own; `options`: fields of `Can` and arguments of `CanLink`."""
        return SimulatedCan(self.port(name, fd), node, fd=fd, **options)

    def speaking(self, protocol: "Protocol", name: str = "", fd: bool = False, **options: Any) -> "SpokenCan":
        """Return a `CanSpoken` on a port of its own; `options`: fields of `Can` and arguments of the link."""
        return SpokenCan(self.port(name, fd), protocol, fd=fd, **options)

    def _on_stuck(self) -> None:
        self.go()

    def go(self) -> None:
        """Start the waiting frame of the highest priority, if the wire is free."""
        ready = [port for port in self.ports if port.can_send()]
        if self._busy or self.stuck or not ready:
            return
        sender = min(ready, key=CanPort.urgency)  # the first of equals; the order is fixed
        loop, frame = sender.loop, sender.sending[0]
        self._busy = True
        loop.call_later(self.frame_s(frame), self._sent, loop, sender, frame)

    def frame_s(self, frame: "Message") -> float:
        """Return the seconds on the wire, without stuff bits: 67 or 47 bits and the data for classic CAN."""
        data_bits = 8 * len(frame.data)
        if not frame.is_fd:
            return ((67 if frame.is_extended_id else 47) + data_bits) / self.bitrate
        check_bits = 5 + 4 + (17 if len(frame.data) <= 16 else 21) + 6
        fast = self.data_bitrate if frame.bitrate_switch else self.bitrate
        return (48 if frame.is_extended_id else 29) / self.bitrate + (data_bits + check_bits) / fast

    def _sent(self, loop: AbstractEventLoop, sender: "CanPort", frame: "Message") -> None:
        self._busy = False
        if sender.can_send() and sender.sending[0] is frame:
            self._judge(loop, sender, frame)
        self.go()

    def _judge(self, loop: AbstractEventLoop, sender: "CanPort", frame: "Message") -> None:
        others = [port for port in self.ports if port is not sender and port.listens(frame)]
        if self.chance(self.faults.corruption):
            self.note(loop, sender.name, "error frame", bytes(frame.data))
            return sender.failed()
        if not others:
            self.note(loop, sender.name, "no acknowledgement", bytes(frame.data))
            return sender.unheard()
        self.note(loop, sender.name, "frame", bytes(frame.data))
        sender.succeeded()
        for port in others:
            port.path.carry(port.loop, frame)
        return None


class CanPort(WireEnd):
    """A controller and its driver. `unplug()` and `plug()` act as on a USB adapter.

    With `clogged = True`, traffic of higher priority keeps this node's frames waiting for ever. `state` is
    `active`, `passive` or `off`; `errors` is its transmit error counter.
    """

    loop: AbstractEventLoop

    def __init__(self, wire: CanWire, name: str, fd: bool) -> None:
        super().__init__(name)
        self.wire, self.fd = wire, fd
        self.state: State = "active"
        self.errors = 0
        self.sending: deque[Message] = deque()
        self.path = Path["Message"](wire, name, self._take, _data)
        self._bus: SimulatedCanBus | None = None
        self._unheard = False

    def open(self, loop: AbstractEventLoop) -> "SimulatedCanBus":
        """Return the counterpart of a `can.Bus(...)`. Raises `OSError` while unplugged or already open."""
        if not self.plugged or self._bus is not None:
            raise trouble(errno.EBUSY if self.plugged else errno.ENODEV, f"could not open {self.name}: ")
        self.loop = loop
        self._bus = SimulatedCanBus(self)
        self.state, self.errors, self._unheard = "active", 0, False
        for port in self.wire.ports:
            port.look_again()
        return self._bus

    @property
    def is_open(self) -> bool:
        """Whether a program uses the controller."""
        return self._bus is not None

    def look_again(self) -> None:
        """Retry frames that nobody acknowledged, because a node has joined."""
        self._unheard = False
        if self.sending:
            self.loop.call_soon_threadsafe(self.wire.go)

    def let_go_of(self, bus: "SimulatedCanBus") -> bool:
        """Release the controller if `bus` holds it. Return whether it did."""
        if self._bus is not bus:
            return False
        self._bus = None
        self.sending.clear()
        return True

    def unplug(self) -> None:
        """Unplug the adapter: the driver reports ENODEV, and waiting frames are lost."""
        self.plugged = False
        self.sending.clear()
        if self._bus is not None:
            self.wire.note(self.loop, self.name, "unplugged")
            self._bus.break_down()

    def _on_clogged(self) -> None:
        self.wire.go()

    def can_send(self) -> bool:
        """Return whether this node takes part in the next arbitration."""
        ready = self.plugged and self.state != "off" and not self._clogged and not self._unheard
        return ready and bool(self.sending)

    def listens(self, frame: "Message") -> bool:
        """Return whether this node receives and acknowledges `frame`."""
        return self._bus is not None and self.plugged and self.state != "off" and (self.fd or not frame.is_fd)

    def urgency(self) -> tuple[int, bool]:
        """Return the sort key of arbitration: the lowest wins."""
        frame = self.sending[0]
        return frame.arbitration_id << (0 if frame.is_extended_id else 18), frame.is_extended_id

    def put(self, frame: "Message") -> None:
        """Queue a frame as a driver does. Raises `CanOperationError` with an errno."""
        from can import CanOperationError

        if not self.plugged:
            raise CanOperationError("no such device", errno.ENODEV)
        if self.state == "off" or len(self.sending) >= _TX_FRAMES:
            raise CanOperationError("no buffer space available", errno.ENOBUFS)
        self.sending.append(frame)
        if len(self.sending) == 1:
            self.wire.go()

    def succeeded(self) -> None:
        """Remove the acknowledged frame from the queue, and lower the error counter."""
        self.sending.popleft()
        self.errors = max(0, self.errors - 1)
        if self.state == "passive" and self.errors < _PASSIVE:
            self._become("active")

    def failed(self) -> None:
        """Count a frame that was destroyed on the wire; it stays first in the queue."""
        self.errors += _TX_ERROR
        if self.errors >= _OFF:
            self.bus_off()
        elif self.errors >= _PASSIVE and self.state == "active":
            self._become("passive")

    def unheard(self) -> None:
        """Count a frame that nobody acknowledged: this makes a node error-passive, but never bus-off."""
        self.errors = min(self.errors + _TX_ERROR, _PASSIVE)
        if self.errors == _PASSIVE:
            self._unheard = True  # it would retransmit for ever: pause until a node joins
            if self.state == "active":
                self._become("passive")

    def bus_off(self) -> None:
        """Take this node off the bus, as 32 failures in a row do; its driver discards waiting frames."""
        self.sending.clear()
        self._become("off")
        if self.wire.restart_s is not None:
            self.loop.call_later(self.wire.restart_s, self.restart)

    def restart(self) -> None:
        """Join the bus again after bus-off."""
        if self.state == "off":
            self.errors = 0
            self._become("active")

    def _become(self, state: State) -> None:
        before, self.state = self.state, state
        self.wire.note(self.loop, self.name, f"error {state}" if state != "off" else "bus-off")
        kind = {"off": _ERR_BUS_OFF}.get(state, _ERR_RESTARTED if before == "off" else _ERR_CONTROLLER)
        self._take(_error_frame(kind, _DETAIL.get(state, 0) if kind == _ERR_CONTROLLER else 0, self.errors))

    def _take(self, frame: "Message") -> None:
        if self._bus is not None:
            self._bus.arrive(frame)


def _data(frame: "Message") -> bytes:
    return bytes(frame.data)


def _error_frame(kind: int, detail: int, errors: int) -> "Message":
    """Return an error frame in SocketCAN's format."""
    from can import Message

    data = bytes((0, detail, 0, 0, 0, 0, min(errors, 255), 0))
    return Message(arbitration_id=kind | _ERR_COUNTERS, is_error_frame=True, is_extended_id=False, data=data)


class SimulatedCanBus(Bell):
    """A stand-in for `can.BusABC`: `send`, `recv` (never waits), `fileno`, `shutdown`."""

    def __init__(self, port: CanPort) -> None:
        super().__init__(port.loop)
        self.port = port
        self.channel_info = f"simulated {port.name}"
        self._arrived: deque[Message] = deque()
        self._down = False

    @property
    def state(self) -> "BusState":
        """The controller's state, in python-can's words."""
        from can import BusState

        states = {"active": BusState.ACTIVE, "passive": BusState.PASSIVE, "off": BusState.ERROR}
        return states[self.port.state]

    def send(self, msg: "Message", timeout: float | None = None) -> None:
        """Queue a frame; never wait. Raises `CanOperationError`: ENOBUFS, or ENODEV if unplugged."""
        self.port.put(copy.copy(msg))

    def say(self, identifier: int, data: bytes) -> None:
        """Queue a data frame: extended above 0x7FF, FD above 8 bytes.

        Raises ValueError for a frame that cannot be, and `SimulationError` if the controller takes none.
        """
        from can import CanOperationError, Message

        extended, is_fd = identifier > 0x7FF, len(data) > 8
        frame = Message(
            arbitration_id=identifier, is_extended_id=extended, data=data, is_fd=is_fd, check=True
        )
        try:
            self.send(frame)
        except CanOperationError as error:
            raise SimulationError(f"{self.port.name}: {error}: let time pass between frames (wait)") from None

    def recv(self, timeout: float | None = None) -> "Message | None":
        """Return the next frame that has arrived, or None. Raises `CanOperationError` if unplugged."""
        from can import CanOperationError

        if self._down:
            raise CanOperationError("no such device", errno.ENODEV)
        frame = self._arrived.popleft() if self._arrived else None
        if not self._arrived:
            self.quiet()
        return frame

    def arrive(self, frame: "Message") -> None:
        """Receive a frame from the wire, or an error frame of this driver."""
        if len(self._arrived) >= _RX_FRAMES:
            return self.port.wire.note(self.port.loop, self.port.name, "overrun", _data(frame))
        taken = copy.copy(frame)
        taken.timestamp, taken.is_rx, taken.channel = self.port.loop.time(), True, self.port.name
        self._arrived.append(taken)
        return self.ring()

    def break_down(self) -> None:
        """Make the descriptor readable and every later `recv` fail with ENODEV."""
        self._down = True
        self.ring()

    def shutdown(self) -> None:
        """Close the bus and release the controller. Idempotent."""
        if self.port.let_go_of(self):
            self.close()


class SimulatedCan(CanLink):
    """A `CanLink` whose interface is a port of a simulated bus; the rest is the real link."""

    def __init__(self, port: CanPort, node: int, **options: Any) -> None:
        fixed: dict[str, Any] = {"interface": "virtual", "channel": port.name, "node": node}
        can, rest = settings(port.wire, Can, options, **fixed)
        super().__init__(can, **rest)
        self.port = port

    def _open_bus(self) -> "BusABC":
        bus: Any = self.port.open(self._loop)
        return bus  # type: ignore[no-any-return]


class SpokenCan(CanSpoken):
    """A `CanSpoken` whose interface is a port of a simulated bus; the rest is the real link."""

    def __init__(self, port: CanPort, protocol: "Protocol", **options: Any) -> None:
        fixed: dict[str, Any] = {"interface": "virtual", "channel": port.name}
        can, rest = settings(port.wire, Can, options, **fixed)
        super().__init__(can, protocol, **rest)
        self.port = port

    def _open_bus(self) -> "BusABC":
        bus: Any = self.port.open(self._loop)
        return bus  # type: ignore[no-any-return]
