"""A link over a CAN bus: any python-can interface, Cyphal/CAN transfers (docs/wire/can.md)."""

import logging
import random
from asyncio import AbstractEventLoop, Handle
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from bridges.can_port import BusPort, Port, SocketPort, prepare, shut_down
from bridges.can_receive import Inbound, Reader
from bridges.can_restart import Restarter
from bridges.can_send import DirectSender, Outbound, ThreadSender
from bridges.can_slcan import prepare_slcan
from bridges.codecs.can import (
    MESSAGE_BYTES_MAX,
    NODE_MAX,
    RESERVED,
    SERVICE,
    SUBJECT_DEFAULT,
    SUBJECT_MAX,
    can_id,
)
from bridges.codecs.can_state import BusState, State
from bridges.codecs.socketcan import Frame
from bridges.device import DeviceLink, DevicePipe
from bus.batch import Batch, from_payloads, payloads
from bus.errors import LinkError
from bus.hub import Hub

if TYPE_CHECKING:
    from can import BusABC

log = logging.getLogger("buscoupler.bridges")

Mixed = Literal["fd", "classic"]

# whose send(timeout=0) returns at once; all others send from a worker thread
_NEVER_BLOCKS = ("socketcan", "udp_multicast", "virtual")
_ECHOES = 4096  # own frames that may still come back
_STATE_S = 1.0


class CanLink(DeviceLink["BusABC"]):
    """A CAN bus as a link. `node` (1..127) must be ours alone among all that transmit on the bus.

    `fd` tells that the controller is a CAN FD one; it hears both formats. `mixed` says what it sends then:
    `fd`, or `classic`, which nodes without FD understand too. A node without FD counts FD frames as
    rejected, reason `fd on classic`, where its interface lets it see them.

    `queue_bytes` bounds the messages that wait, `age_ms` how long: more are dropped, reason `queue full`,
    `stale`. `in_flight` bounds the frames in the driver, on SocketCAN: what it has comes out late if the bus
    stops. `options` go to the python-can interface as they are. `bus` has the controller's states and
    errors, `bus_state` the current one; a frame with our node id that we did not send is counted as
    rejected, reason `conflict`, and logged. Raises `LinkError` for what can never work.
    """

    def __init__(
        self,
        interface: str,
        channel: str,
        node: int,
        subject: int = SUBJECT_DEFAULT,
        fd: bool = False,
        bitrate: int | None = None,
        data_bitrate: int | None = None,
        bitrate_switch: bool = True,
        mixed: Mixed = "fd",
        queue_bytes: int = 64 * 1024,
        age_ms: float = 500,
        in_flight: int = 10,
        options: dict[str, Any] | None = None,
        jitter: Callable[[float, float], float] = random.uniform,
        **retry: Any,
    ) -> None:
        super().__init__(f"can:{interface}:{channel}", jitter=jitter, **retry)
        options = options or {}
        _check(self.name, node, subject, mixed, queue_bytes, age_ms, in_flight, options)
        self.interface, self.channel, self.node, self.subject, self.fd = interface, channel, node, subject, fd
        self.sends_fd = fd and mixed == "fd"
        self.bitrate_switch = self.sends_fd and bitrate_switch
        self.queue_bytes, self.age_s, self.in_flight = queue_bytes, age_ms / 1000, in_flight
        self.bus = BusState()
        self.own: deque[bytes] = deque(maxlen=_ECHOES)
        self._bitrate, self._data_bitrate = bitrate, data_bitrate if fd else None
        self._arguments = self._bus_arguments(options)
        self._transfer_id = 0

    @property
    def identifier(self) -> int:
        return can_id(self.subject, self.node)

    @property
    def bus_state(self) -> State:
        """What the controller is: `error-active`, ..., `bus-off`; `unknown` where nothing tells."""
        return self.bus.state

    def _bus_arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        rates = {"bitrate": self._bitrate, "data_bitrate": self._data_bitrate}
        arguments = {key: value for key, value in rates.items() if value is not None} | options
        if self.fd or self.interface == "udp_multicast":  # which else hides FD frames from us
            arguments["fd"] = True
        if self.interface == "socketcan":
            arguments.setdefault("can_filters", subject_filter(self.subject))
        return arguments

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the bus. Raises `LinkError` where python-can, or that interface in it, is missing."""
        try:
            import can
        except ImportError as error:
            raise LinkError(f"{self.name}: needs python-can: install buscoupler[can]") from error
        if self.interface not in can.VALID_INTERFACES:
            known = ", ".join(sorted(can.VALID_INTERFACES))
            raise LinkError(f"{self.name}: unknown interface: use one of {known}")
        super().open(hub, loop)

    def _open_device(self) -> "BusABC":
        import can

        # ignore_config: settings come from the topology, not from hidden files of this user
        bus = can.Bus(channel=self.channel, interface=self.interface, ignore_config=True, **self._arguments)
        try:
            self._prepare(bus)
        except Exception:
            shut_down(bus)
            raise
        return bus

    def _prepare(self, bus: Any) -> None:
        if self.interface == "socketcan":
            prepare(bus.socket)
        elif self.interface == "slcan":
            prepare_slcan(bus, self._bitrate, self._data_bitrate)

    def _release(self, device: "BusABC") -> None:
        shut_down(device)

    def _make_pipe(self, device: "BusABC", on_close: Callable[[str], None]) -> DevicePipe:
        kind = SocketPort if self.interface == "socketcan" else BusPort
        port = kind(device, self.identifier, self.sends_fd, self.bitrate_switch)
        return CanPipe(self, port, self._hub, self._loop, on_close)

    def make_restarter(self, loop: AbstractEventLoop) -> Restarter:
        return Restarter(self.channel, loop, self._retry_min_s, self._retry_max_s, self._jitter)

    def next_transfer_id(self) -> int:
        """Counts on over re-openings: a transfer-id that starts again looks like a duplicate."""
        self._transfer_id += 1
        return self._transfer_id


def _check(
    name: str,
    node: int,
    subject: int,
    mixed: str,
    queue_bytes: int,
    age_ms: float,
    in_flight: int,
    options: dict[str, Any],
) -> None:
    if not 1 <= node <= NODE_MAX or not 0 <= subject <= SUBJECT_MAX:
        raise LinkError(f"{name}: node must be 1 to 127 and subject 0 to {SUBJECT_MAX}")
    if queue_bytes < MESSAGE_BYTES_MAX:
        raise LinkError(f"{name}: queue_bytes must be at least {MESSAGE_BYTES_MAX}")
    if mixed not in get_args(Mixed):
        raise LinkError(f"{name}: mixed is fd or classic: what to send on a bus that has both")
    if age_ms <= 0 or in_flight < 1:
        raise LinkError(f"{name}: age_ms must be above 0 and in_flight at least 1")
    if not options.get("local_loopback", True):
        raise LinkError(f"{name}: without local_loopback nothing tells when a frame was sent")


def subject_filter(subject: int) -> list[dict[str, Any]]:
    """Lets messages of `subject` through, whoever sends them; the kernel drops the rest."""
    mask = SUBJECT_MAX << 8 | SERVICE | RESERVED
    return [{"can_id": subject << 8, "can_mask": mask, "extended": True}]


class CanPipe:
    """The one peer of a CAN bus: everybody on it."""

    def __init__(
        self,
        link: CanLink,
        port: Port,
        hub: Hub,
        loop: AbstractEventLoop,
        on_close: Callable[[str], None],
    ) -> None:
        self.name, self.stats = link.name, link.stats
        self._link, self._port = link, port
        self._hub, self._loop, self._on_close = hub, loop, on_close
        self._closed = False
        self._fd = port.fileno()
        self._reader: Reader | None = None
        self._again: Handle | None = None
        self._asking: Handle | None = None
        self._restarter = link.make_restarter(loop)
        sender = DirectSender if link.interface in _NEVER_BLOCKS else ThreadSender
        self._outbound: Outbound = sender(link, port, loop, self._gone)
        self._inbound = Inbound(
            link.name,
            link.identifier,
            link.fd,
            link.stats,
            link.own,
            self._outbound.confirm,
            self._on_error,
        )

    def start(self) -> None:
        if self._fd is not None:
            self._loop.add_reader(self._fd, self._on_readable)
        elif isinstance(self._port, BusPort):
            self._reader = Reader(self._port, self._loop, self._on_arrivals, self._gone)
        self._hub.attach(self)
        self._link.bus.state = "unknown"
        self._ask_state()

    def _on_readable(self) -> None:
        """Comes back by itself while frames are left: some drivers hold them where no descriptor tells."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        frames, more, fault = self._port.read(self._inbound.note_fault)
        self._publish(frames)
        if fault:
            self._gone(fault)
        elif more and not self._closed:
            self._again = self._loop.call_soon(self._on_readable)

    def _on_arrivals(self, frames: list[Frame], lost: int, unreadable: int) -> None:
        self._port.overruns += lost
        if unreadable:
            self.stats.reject("unreadable", unreadable)
        if not self._closed:
            self._publish(frames)

    def _publish(self, frames: list[Frame]) -> None:
        if self._port.overruns:
            self.stats.reject("overrun", self._port.overruns)
            self._port.overruns = 0
        if not frames:
            return
        messages = self._inbound.messages(self._loop.time(), frames)
        if messages:
            self._hub.publish(from_payloads(messages), self)
        if self._port.confirms:
            self._outbound.pump()

    def _on_error(self, classes: int, data: bytes | bytearray) -> None:
        """Only SocketCAN's error frames have a meaning that is laid down; others are counted."""
        bus = self._link.bus
        if not self._port.confirms:
            bus.errors["error frame"] = bus.errors.get("error frame", 0) + 1
            return
        overflows, before = bus.rx_overflows, bus.state
        changed = bus.feed(classes, data)
        if bus.rx_overflows > overflows:
            self.stats.reject("overrun")
        if changed:
            self._changed(before)

    def _ask_state(self) -> None:
        """Asked now and then: an error frame may be lost, and some interfaces only tell when asked."""
        state, before = self._port.state(), self._link.bus_state
        # the carrier tells bus-off from not bus-off, and error frames tell more
        known = self._port.confirms and "bus-off" not in (state, before) and before != "unknown"
        if state != "unknown" and not known and self._link.bus.enter(state):
            self._changed(before)
        if not self._closed and (state != "unknown" or self._port.confirms):
            self._asking = self._loop.call_later(_STATE_S, self._ask_state)

    def _changed(self, before: State) -> None:
        state = self._link.bus_state
        if before == "unknown" and state == "error-active":
            return
        level = logging.INFO if state == "error-active" else logging.WARNING
        log.log(level, "%s: the controller is %s, was %s", self.name, state, before)
        if state == "bus-off":
            self._on_bus_off()
        elif before == "bus-off":
            self._restarter.recovered()
            self._outbound.resume()

    def _on_bus_off(self) -> None:
        """SocketCAN's controllers are restarted; elsewhere opening the bus anew does."""
        if not self._port.confirms:
            return self._gone("bus-off")
        self._restarter.bus_off()
        return self._outbound.hold("bus off")

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        return self._outbound.put(payloads(batch))

    def close(self) -> None:
        self._gone("closed")

    def _gone(self, why: str) -> None:
        if self._closed:
            return
        self._closed = True
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
        for handle in (self._again, self._asking):
            if handle is not None:
                handle.cancel()
        self._restarter.close()
        self._hub.detach(self)
        self._outbound.close("bus off" if why == "bus-off" else "closed")
        if self._reader is not None:
            self._reader.stop()
        self._port.close()
        if why != "bus-off":
            self._link.bus.state = "unknown"
        self._on_close(why)
