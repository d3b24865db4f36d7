"""A link over a CAN bus: any python-can interface, Cyphal/CAN transfers (docs/wire/can.md)."""

import random
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from bridges.media.can.codec import (
    NODE_MAX,
    RESERVED,
    SERVICE,
    SUBJECT_DEFAULT,
    SUBJECT_MAX,
    can_id,
)
from bridges.media.can.pipe import CanPipe
from bridges.media.can.port import BusPort, SocketPort, prepare, shut_down
from bridges.media.can.restart import Restarter
from bridges.media.can.slcan import prepare_slcan
from bridges.media.can.state import BusState, State
from bridges.media.device import DeviceLink, DevicePipe
from bridges.media.shedding import Shed, checked
from bus.errors import LinkError
from bus.hub import Hub
from bus.wire.envelope import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from can import BusABC

Mixed = Literal["fd", "classic"]

_ECHOES = 4096  # own frames that may still come back


class CanLink(DeviceLink["BusABC"]):
    """A CAN bus as a link. `node` (1..127) must be ours alone among all that transmit on the bus.

    `fd` tells that the controller is a CAN FD one; it hears both formats. `mixed` says what it sends then:
    `fd`, or `classic`, which nodes without FD understand too. A node without FD counts FD frames as
    rejected, reason `fd on classic`, where its interface lets it see them.

    `queue_bytes` bounds the messages that wait, `age_ms` how long: more are dropped, reason `queue full`,
    `stale`. `shed`, a whole policy, stands in for both; an age limit there is always. `in_flight` bounds the
    frames in the driver, on SocketCAN: what it has comes out late if the bus stops.
    `options` go to the python-can interface as they are. `bus` has the controller's states and
    errors, `condition` the current one; a frame with our node id that we did not send is counted as
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
        shed: Shed | None = None,
        **retry: Any,
    ) -> None:
        super().__init__(f"can:{interface}:{channel}", jitter=jitter, **retry)
        options = options or {}
        _check(self.name, node, subject, mixed, in_flight, options)
        self.interface, self.channel, self.node, self.subject, self.fd = interface, channel, node, subject, fd
        self.sends_fd = fd and mixed == "fd"
        self.bitrate_switch = self.sends_fd and bitrate_switch
        self.shed = checked(self.name, shed, queue_bytes, age_ms / 1000, MESSAGE_BYTES_MAX)
        self.age_s, self.in_flight = self.shed.age_s or age_ms / 1000, in_flight
        self.bus = BusState()
        self.own: deque[bytes] = deque(maxlen=_ECHOES)
        self._bitrate, self._data_bitrate = bitrate, data_bitrate if fd else None
        self._arguments = self._bus_arguments(options)
        self._transfer_id = random.randrange(
            32
        )  # after a quick restart the first would look like a duplicate

    @property
    def identifier(self) -> int:
        return can_id(self.subject, self.node)

    @property
    def condition(self) -> State:
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
        return Restarter(self.channel, loop, self._pauses.fresh())

    def next_transfer_id(self) -> int:
        """Counts on over re-openings: a transfer-id that starts again looks like a duplicate."""
        self._transfer_id += 1
        return self._transfer_id

    def take_back_transfer_id(self) -> None:
        """The last one was not used: a gap of 31 would look like a duplicate."""
        self._transfer_id -= 1


def _check(
    name: str,
    node: int,
    subject: int,
    mixed: str,
    in_flight: int,
    options: dict[str, Any],
) -> None:
    if not 1 <= node <= NODE_MAX or not 0 <= subject <= SUBJECT_MAX:
        raise LinkError(f"{name}: node must be 1 to 127 and subject 0 to {SUBJECT_MAX}")
    if mixed not in get_args(Mixed):
        raise LinkError(f"{name}: mixed is fd or classic: what to send on a bus that has both")
    if in_flight < 1:
        raise LinkError(f"{name}: in_flight must be at least 1")
    if not options.get("local_loopback", True):
        raise LinkError(f"{name}: without local_loopback nothing tells when a frame was sent")


def subject_filter(subject: int) -> list[dict[str, Any]]:
    """Lets messages of `subject` through, whoever sends them; the kernel drops the rest."""
    mask = SUBJECT_MAX << 8 | SERVICE | RESERVED
    return [{"can_id": subject << 8, "can_mask": mask, "extended": True}]
