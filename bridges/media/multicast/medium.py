"""The record of a UDP multicast group."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, ClassVar

from bridges.media.medium import CLOCK_S, SEAL_BYTES, Medium, Word
from bus.confined import Confined
from bus.key_types import Port
from bus.needs import Need, Probe
from bus.schema import Check, Range
from bus.urls import is_loopback


def _check_group(text: str) -> None:
    group = ip_address(text)
    if not group.is_multicast or "%" in text:
        raise ValueError(f"{text} is no multicast group: 224.0.0.0/4 or ff00::/8, without a zone")


def _check_interface(text: str) -> None:
    if not text:
        raise ValueError("interface is needed: a name such as eth0, or one of its addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Multicast(Medium):
    """A UDP multicast group: small frames share a datagram, long ones are fragmented."""

    LINK: ClassVar = "bridges.media.multicast.link:MulticastLink"
    key: ClassVar = "multicast"
    tmq_items: ClassVar = "datagrams"
    signs: ClassVar = True
    seal_bytes: ClassVar = SEAL_BYTES
    clock_s: ClassVar = CLOCK_S
    help: ClassVar = "a multicast group"
    words: ClassVar = (
        Word(
            "multicast",
            ("group", "port"),
            "multicast:239.9.42.1:9943?interface=eth0",
            "a UDP multicast group",
        ),
    )

    group: Annotated[str, Check(_check_group, "a multicast address"), "IPv4 or IPv6 group"]
    port: Annotated[Port, "UDP port"]
    interface: Annotated[
        str, Check(_check_interface, "text"), "network interface or its address: always said, never guessed"
    ]
    hops: Annotated[int, Range(0, 255), "TTL or hop limit; 0 stays on this machine"] = 1
    datagram_bytes: Annotated[
        int, Range(64, 65_507), "longest datagram sent; longer frames are fragmented"
    ] = 1400
    queue_bytes: Annotated[int, Range(8192, 1 << 40), "bound of the queue to the socket"] = 1 << 20

    @property
    def device(self) -> str:
        return f"{self.group}:{self.port}"

    def label(self) -> str:
        return f"multicast {self.device} on {self.interface}"

    def wire(self, machine: str) -> str:
        return f"multicast {self.device}"

    def needs(self) -> Iterator[Need]:
        arguments = self.interface, self.group
        yield Probe("bridges.media.multicast.interfaces:trouble", arguments)

    @property
    def confined(self) -> Confined | None:
        if self.hops == 0:
            return Confined("machine", "hops is 0", stated=True)
        if self.interface == "lo" or is_loopback(self.interface):
            return Confined("machine", f"{self.interface} is the machine's own interface")
        return None

    @property
    def shared(self) -> bool:
        return True
