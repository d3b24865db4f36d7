"""A link to an IP multicast group, over UDP (docs/wire/multicast.md): all its members are one peer."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from bridges.media.device import DeviceLink, DevicePipe
from bridges.media.multicast.pipe import DATAGRAM_BYTES_MIN, MulticastPipe
from bridges.media.multicast.rtnetlink import Address
from bridges.media.multicast.sockets import Sockets, open_sockets
from bridges.media.shedding import Shed, checked
from bus.errors import LinkError
from bus.wire.envelope import MESSAGE_BYTES_MAX

DATAGRAM_BYTES_MAX = 65507
QUEUE_BYTES_MIN = 8192


class MulticastLink(DeviceLink[Sockets]):
    """The group `group` (IPv4 or IPv6) at `port`, on one interface, by its name or one of its addresses.

    `hops`: the time to live, 1 stays on the local network. `loopback`: other programs of this host
    hear us. `datagram_bytes` bounds a datagram without its IP and UDP headers; an interface with a
    smaller MTU lowers it. `queue_bytes` bounds what waits to be sent; more is dropped, `queue full`.
    `shed`, a whole policy, stands in for that: datagrams are then made one by one, as the socket takes them.
    `retry_min_s`, `retry_max_s`, `jitter`: see `DeviceLink`.
    Raises `LinkError` for what can never work: no multicast group, a port or hops out of range.
    """

    def __init__(
        self,
        group: str,
        port: int,
        interface: str,
        hops: int = 1,
        datagram_bytes: int = 1400,
        queue_bytes: int = 1 << 20,
        loopback: bool = True,
        shed: Shed | None = None,
        **retry: Any,
    ) -> None:
        name = f"multicast:[{group}]:{port}" if ":" in group else f"multicast:{group}:{port}"
        super().__init__(f"{name}@{interface}", **retry)
        _check(self.name, port, interface, hops, datagram_bytes, queue_bytes)
        self.group, self.port, self.interface = _group(self.name, group), port, interface
        self.hops, self.loopback = hops, loopback
        self.datagram_bytes, self._sheds = datagram_bytes, shed is not None
        self.shed = checked(self.name, shed, queue_bytes, None, MESSAGE_BYTES_MAX)

    def _open_device(self) -> Sockets:
        return open_sockets(self.interface, self.group, self.port, self.hops, self.loopback)

    def _release(self, device: Sockets) -> None:
        device.close()

    def _make_pipe(self, device: Sockets, on_close: Callable[[str], None]) -> DevicePipe:
        limits, shed = (self.datagram_bytes, self.queue_bytes), self.shed if self._sheds else None
        return MulticastPipe(self.name, device, self.stats, self._hub, self._loop, limits, on_close, shed)


def _group(name: str, text: str) -> Address:
    try:
        group = ip_address(text)
    except ValueError as error:
        raise LinkError(f"{name}: {text} is not an IP address") from error
    if not group.is_multicast or getattr(group, "scope_id", None):
        raise LinkError(
            f"{name}: a group is 224.0.0.0 to 239.255.255.255 or ff00::/8, without a zone, not {text}"
        )
    return group


def _check(name: str, port: int, interface: str, hops: int, datagram_bytes: int, queue_bytes: int) -> None:
    if not interface:
        raise LinkError(f"{name}: interface is needed: a name such as eth0, or one of its addresses")
    if not 1 <= port <= 65535:
        raise LinkError(f"{name}: port must be 1 to 65535, not {port}")
    if not 0 <= hops <= 255:
        raise LinkError(f"{name}: hops must be 0 to 255, not {hops}")
    if not DATAGRAM_BYTES_MIN <= datagram_bytes <= DATAGRAM_BYTES_MAX:
        raise LinkError(
            f"{name}: datagram_bytes must be {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX},"
            f" not {datagram_bytes}"
        )
    if queue_bytes < QUEUE_BYTES_MIN:
        raise LinkError(
            f"{name}: queue_bytes must be at least {QUEUE_BYTES_MIN}, else the longest message may never fit"
        )
