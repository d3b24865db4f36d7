"""The record of a UDP multicast group."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.medium import Medium, Word
from bridges.media.multicast.options import MulticastOptions

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Multicast(MulticastOptions, Medium):
    """A UDP multicast group: small frames share a datagram, long ones are fragmented."""

    key: ClassVar = "multicast"
    help: ClassVar = "a multicast group"
    words: ClassVar = (
        Word(
            "multicast",
            ("group", "port"),
            "multicast:239.9.42.1:9943?interface=eth0",
            "a UDP multicast group",
        ),
    )

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.multicast.link import MulticastLink

        return MulticastLink(self, shed=shed, **retry)

    def label(self) -> str:
        return f"multicast {self.device} on {self.interface}"

    def wire(self, machine: str) -> str:
        return f"multicast {self.device}"

    @property
    def shared(self) -> bool:
        return True
