"""The record of a UDP peer: what buscoupler finds by the entry point."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.medium import Medium, Taken, Word
from buscoupler_udp.options import UdpOptions

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp(UdpOptions, Medium):
    """One peer over UDP: a frame in each datagram."""

    key: ClassVar = "udp"
    help: ClassVar = "a UDP peer"
    words: ClassVar = (Word("udp", ("host", "port"), "udp:HOST:PORT?local_port=9950", "one peer over UDP"),)
    deaf: ClassVar = True

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from buscoupler_udp.link import UdpLink

        return UdpLink(self, shed, **retry)

    def takes(self, node: int | None) -> Iterator[Taken]:
        yield Taken(f"UDP port {self.own_port}")
