"""A link to an IP multicast group, over UDP (docs/wire/multicast.md): all its members are one peer."""

from collections.abc import Callable
from typing import Any

from bridges.media.device import DeviceLink, DevicePipe
from bridges.media.multicast.options import MulticastOptions
from bridges.media.multicast.pipe import MulticastPipe
from bridges.media.multicast.sockets import Sockets, open_sockets
from bridges.media.shedding import Shed, checked
from bus.wire.envelope import MESSAGE_BYTES_MAX


class MulticastLink(DeviceLink[Sockets]):
    """A multicast group as a link, on one interface.

    `loopback`: other programs of this host hear us. An interface with a smaller MTU lowers
    `datagram_bytes`. More than `queue_bytes` is dropped, `queue full`; `shed`, a whole policy, stands in for
    that: datagrams are then made one by one, as the socket takes them.
    `retry`: `retry_min_s`, `retry_max_s` and `jitter` of `DeviceLink`. Raises `LinkError` for what can never
    work.
    """

    def __init__(
        self, options: MulticastOptions, shed: Shed | None = None, loopback: bool = True, **retry: Any
    ) -> None:
        group = f"[{options.group}]" if ":" in options.group else options.group
        super().__init__(f"multicast:{group}:{options.port}@{options.interface}", **retry)
        self.options, self.loopback, self._sheds = options, loopback, shed is not None
        self.shed = checked(self.name, shed, options.queue_bytes, None, MESSAGE_BYTES_MAX)

    def _open_device(self) -> Sockets:
        return open_sockets(self.options, self.loopback)

    def _release(self, device: Sockets) -> None:
        device.close()

    def _make_pipe(self, device: Sockets, on_close: Callable[[str], None]) -> DevicePipe:
        limits, shed = (self.options.datagram_bytes, self.queue_bytes), self.shed if self._sheds else None
        return MulticastPipe(self.name, device, self.stats, self._hub, self._loop, limits, on_close, shed)
