"""A link over a CAN bus: any python-can interface, Cyphal/CAN transfers (docs/wire/can.md)."""

import contextlib
import logging
import random
import socket
from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bridges.can_receive import Inbound, Reader, drain
from bridges.can_send import DirectSender, Outbound, ThreadSender
from bridges.codecs.can import (
    MESSAGE_BYTES_MAX,
    NODE_MAX,
    RESERVED,
    SERVICE,
    SUBJECT_DEFAULT,
    SUBJECT_MAX,
)
from bridges.device import DeviceLink, DevicePipe
from bus.batch import Batch, from_payloads, payloads
from bus.errors import LinkError
from bus.hub import Hub

if TYPE_CHECKING:
    from can import BusABC, Message

log = logging.getLogger("buscoupler.bridges")

_RECEIVE_BYTES = 1 << 20
# whose send(timeout=0) returns at once; all others send from a worker thread
_NEVER_BLOCKS = ("socketcan", "udp_multicast", "virtual")
_TAKES_FD_ALWAYS = ("socketcan", "udp_multicast")


class CanLink(DeviceLink["BusABC"]):
    """A CAN bus as a link. `node` (1..127) must be ours alone among all that transmit on the bus.

    `options` go to the python-can interface as they are. `queue_bytes` bounds the messages that wait;
    more are dropped and counted `queue full`. A frame with our node id that we did not send is counted
    as rejected, reason `conflict`, and logged. Raises `LinkError` for what can never work.
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
        queue_bytes: int = 64 * 1024,
        options: dict[str, Any] | None = None,
        jitter: Callable[[float, float], float] = random.uniform,
        **retry: Any,
    ) -> None:
        super().__init__(f"can:{interface}:{channel}", jitter=jitter, **retry)
        if not 1 <= node <= NODE_MAX or not 0 <= subject <= SUBJECT_MAX:
            raise LinkError(f"{self.name}: node must be 1 to 127 and subject 0 to {SUBJECT_MAX}")
        if queue_bytes < MESSAGE_BYTES_MAX:
            raise LinkError(f"{self.name}: queue_bytes must be at least {MESSAGE_BYTES_MAX}")
        self.interface, self.channel, self.node, self.subject, self.fd = interface, channel, node, subject, fd
        self.queue_bytes = queue_bytes
        self.bitrate_switch = fd and bitrate_switch
        rates = {"bitrate": bitrate, "data_bitrate": data_bitrate if fd else None}
        self._arguments = {key: value for key, value in rates.items() if value is not None} | (options or {})
        if fd or interface in _TAKES_FD_ALWAYS:
            self._arguments["fd"] = fd
        if interface == "socketcan":
            self._arguments.setdefault("can_filters", subject_filter(subject))
        self._transfer_id = 0

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
        return can.Bus(channel=self.channel, interface=self.interface, ignore_config=True, **self._arguments)

    def _release(self, device: "BusABC") -> None:
        _shut_down(device)

    def _make_pipe(self, device: "BusABC", on_close: Callable[[str], None]) -> DevicePipe:
        return CanPipe(self, device, self._hub, self._loop, on_close)

    def next_transfer_id(self) -> int:
        """Counts on over re-openings: a transfer-id that starts again looks like a duplicate."""
        self._transfer_id += 1
        return self._transfer_id


def subject_filter(subject: int) -> list[dict[str, Any]]:
    """Lets messages of `subject` through, whoever sends them; the kernel drops the rest."""
    mask = SUBJECT_MAX << 8 | SERVICE | RESERVED
    return [{"can_id": subject << 8, "can_mask": mask, "extended": True}]


def _shut_down(bus: "BusABC") -> None:
    try:
        bus.shutdown()
    except Exception as error:  # a driver may raise anything, and it is gone anyway
        log.debug("shutting down %s: %s", bus, error)


def descriptor(bus: "BusABC") -> int | None:
    """The file descriptor to wait on; None where the interface has none."""
    try:
        number = bus.fileno()
    except (NotImplementedError, OSError):
        return None
    return number if number >= 0 else None


def _widen(fd: int) -> None:
    """The default receive buffer holds fewer frames than one long classic transfer."""
    with contextlib.suppress(OSError), socket.socket(fileno=socket.dup(fd)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)


class CanPipe:
    """The one peer of a CAN bus: everybody on it."""

    def __init__(
        self,
        link: CanLink,
        bus: "BusABC",
        hub: Hub,
        loop: AbstractEventLoop,
        on_close: Callable[[str], None],
    ) -> None:
        self.name, self.stats = link.name, link.stats
        self._link, self._bus = link, bus
        self._hub, self._loop, self._on_close = hub, loop, on_close
        self._closed = False
        self._inbound = Inbound(link.name, link.node, link.subject, self.stats)
        self._reader: Reader | None = None
        self._fd: int | None = None
        self._again: Handle | None = None
        sender = DirectSender if link.interface in _NEVER_BLOCKS else ThreadSender
        self._outbound: Outbound = sender(link, bus, loop, self._inbound.own.append, self._gone)

    def start(self) -> None:
        self._fd = descriptor(self._bus)
        if self._fd is None:
            self._reader = Reader(self._bus, self._loop, self._on_arrivals, self._gone)
        else:
            _widen(self._fd)
            self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        """Comes back by itself while frames are left: some drivers hold them where no descriptor tells."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        frames, more, fault = drain(self._bus.recv, self._inbound.note_fault)
        self._publish(frames)
        if fault:
            self._gone(fault)
        elif more and not self._closed:
            self._again = self._loop.call_soon(self._on_readable)

    def _on_arrivals(self, frames: "list[Message]", lost: int) -> None:
        if lost:
            self.stats.reject("overrun", lost)
        if not self._closed:
            self._publish(frames)

    def _publish(self, frames: "list[Message]") -> None:
        messages = self._inbound.messages(self._loop.time(), frames) if frames else []
        if messages:
            self._hub.publish(from_payloads(messages), self)

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
        if self._again is not None:
            self._again.cancel()
        self._hub.detach(self)
        self._outbound.close()
        if self._reader is not None:
            self._reader.stop()
        _shut_down(self._bus)
        self._on_close(why)
