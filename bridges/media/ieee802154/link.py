"""A link to the radios of a PAN of IEEE 802.15.4 (docs/wire/ieee802154.md). All of them are one peer."""

from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, PipeContext
from bridges.media.ieee802154.medium import Ieee802154
from bridges.media.ieee802154.pipe import RadioPipe
from bridges.media.ieee802154.radio import Radio, open_radio
from bridges.media.multicast.datagram import is_plain
from bridges.media.shedding import Shed
from bus.hub import Link
from bus.noise import Ear


class RadioLink(DeviceLink[Radio]):
    """A radio as a link, by its network interface, which somebody else has put into its PAN and channel.

    Messages above `queue_bytes` are dropped as `queue full`. `shed` is a whole policy that replaces
    `queue_bytes`; datagrams are then made one by one, when the driver accepts them. `retry` is that of
    `DeviceLink`. Raises `LinkError` for settings that can never work.
    """

    def __init__(self, options: Ieee802154, shed: Shed | None = None, **retry: Any) -> None:
        super().__init__(f"ieee802154:{options.interface}", shed, options.queue_bytes, **retry)
        self.options, self.sheds = options, shed is not None

    def revise(self, other: Link) -> bool:
        """Take over another shed policy. To begin or to stop shedding takes a new opening."""
        if not isinstance(other, RadioLink) or other.sheds != self.sheds:
            return False
        self.options = other.options  # with the bound for later openings
        return super().revise(other)

    @property
    def ear(self) -> Ear:
        return Ear("datagrams", "another program in this PAN", sure=32, few=4)

    def _is_plain(self, data: bytes) -> bool:
        return is_plain(data)

    def _open_device(self) -> Radio:
        return open_radio(self.options)

    def _release(self, device: Radio) -> None:
        device.close()

    def _make_pipe(self, device: Radio, context: PipeContext) -> OpenPipe:
        return RadioPipe(device, self.options, self.shed if self.sheds else None, context, self.seals)
