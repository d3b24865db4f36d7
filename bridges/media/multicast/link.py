"""A link to an IP multicast group over UDP (docs/wire/multicast.md). All its members are one peer."""

from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, PipeContext
from bridges.media.multicast.datagram import is_plain
from bridges.media.multicast.medium import Multicast
from bridges.media.multicast.pipe import MulticastPipe
from bridges.media.multicast.sockets import Sockets, open_sockets
from bridges.media.shedding import Shed
from bus.hub import Link
from bus.noise import Ear
from bus.urls import url_host


class MulticastLink(DeviceLink[Sockets]):
    """A multicast group as a link, on one interface.

    With `loopback`, other programs of this host receive what we send. A small MTU of the interface lowers
    `datagram_bytes`. Messages above `queue_bytes` are dropped as `queue full`. `shed` is a whole policy that
    replaces `queue_bytes`; datagrams are then made one by one, when the socket accepts them.
    `retry`: `retry_min_s`, `retry_max_s` and `jitter` of `DeviceLink`. Raises `LinkError` for settings that
    can never work.
    """

    def __init__(
        self, options: Multicast, shed: Shed | None = None, loopback: bool = True, **retry: Any
    ) -> None:
        name = f"multicast:{url_host(options.group)}:{options.port}@{options.interface}"
        super().__init__(name, shed, options.queue_bytes, **retry)
        self.options, self.loopback, self.sheds = options, loopback, shed is not None

    def revise(self, other: Link) -> bool:
        """Take over another shed policy. To begin or to stop shedding takes a new opening."""
        if not isinstance(other, MulticastLink) or other.sheds != self.sheds:
            return False
        self.options = other.options  # with the bound for later openings
        return super().revise(other)

    @property
    def ear(self) -> Ear:
        return Ear("datagrams", "another program on this group and port", sure=32, few=4)

    def _is_plain(self, data: bytes) -> bool:
        return is_plain(data)

    def _open_device(self) -> Sockets:
        return open_sockets(self.options, self.loopback)

    def _release(self, device: Sockets) -> None:
        device.close()

    def _make_pipe(self, device: Sockets, context: PipeContext) -> OpenPipe:
        return MulticastPipe(device, self.options, self.shed if self.sheds else None, context, self.seals)
