"""The record of a UDP peer: its settings and facts. buscoupler finds it by its entry point."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.media.medium import Medium, Taken, Word
from bus.key_types import Host, Port, QueueBytes
from bus.needs import Need, host_needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp(Medium):
    """One peer over UDP: a frame in each datagram."""

    LINK: ClassVar = "buscoupler_udp.link:UdpLink"
    key: ClassVar = "unicast"
    help: ClassVar = "a UDP peer"
    words: ClassVar = (
        Word("unicast", ("host", "port"), "unicast:HOST:PORT?local_port=9950", "one peer over UDP"),
    )
    deaf: ClassVar = True
    tmq_items: ClassVar = "datagrams"

    host: Annotated[Host, "the peer"]
    port: Annotated[Port, "UDP port of the peer"]
    local_port: Annotated[Port | None, "our own UDP port; `port` by default"] = None
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the socket"] = 1 << 20

    @property
    def device(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def own_port(self) -> int:
        return self.local_port or self.port

    def needs(self) -> Iterator[Need]:
        yield from host_needs(self.host)

    def takes(self, node: int | None) -> Iterator[Taken]:
        yield Taken(f"UDP port {self.own_port}")
