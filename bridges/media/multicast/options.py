"""The settings of a UDP multicast group."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated

from bridges.media.options import Options
from bus.schema import Check, Port, Range, doc


def _check_group(text: str) -> None:
    group = ip_address(text)
    if not group.is_multicast or "%" in text:
        raise ValueError(f"{text} is no multicast group: 224.0.0.0/4 or ff00::/8, without a zone")


def _check_interface(text: str) -> None:
    if not text:
        raise ValueError("interface is needed: a name such as eth0, or one of its addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticastOptions(Options):
    """The settings of a UDP multicast group."""

    group: Annotated[str, Check(_check_group, "a multicast address")] = field(
        metadata=doc("IPv4 or IPv6 group")
    )
    port: Port = field(metadata=doc("UDP port"))
    interface: Annotated[str, Check(_check_interface, "text")] = field(
        metadata=doc("network interface or its address: always said, never guessed")
    )
    hops: Annotated[int, Range(0, 255)] = field(
        default=1, metadata=doc("TTL or hop limit; 0 stays on this machine")
    )
    datagram_bytes: Annotated[int, Range(64, 65_507)] = field(
        default=1400, metadata=doc("longest datagram sent; longer frames are fragmented")
    )
    queue_bytes: Annotated[int, Range(8192, 1 << 40)] = field(
        default=1 << 20, metadata=doc("bound of the queue to the socket")
    )

    @property
    def device(self) -> str:
        return f"{self.group}:{self.port}"
