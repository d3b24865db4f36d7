"""The record of a peer over UDP, or of a broadcast address."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, ClassVar

from bridges.media.medium import Medium, Taken, Word
from bus.confined import Confined
from bus.key_types import Host, Port, QueueBytes
from bus.needs import Listening, Need, host_needs
from bus.urls import is_loopback

_LOOPBACKS = ("127.0.0.1", "::1", "localhost")
"""The hosts to which the kernel sends from the same address; to another of 127.0.0.0/8 from the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp(Medium):
    """One peer over UDP, or all at a broadcast address: a frame in each datagram."""

    LINK: ClassVar = "bridges.media.udp.link:udp_link"
    SPEAKS: ClassVar = "bridges.media.udp.link:UdpLink"
    items: ClassVar = ("datagrams",)
    tmq_items: ClassVar = "datagrams"
    key: ClassVar = "udp"
    help: ClassVar = "a peer over UDP, or a broadcast address"
    words: ClassVar = (
        Word(
            "udp",
            ("host", "port"),
            "udp:HOST:PORT?own_port=9950",
            "one peer over UDP, or a broadcast address",
        ),
    )
    deaf: ClassVar = True

    host: Annotated[Host, "the peer, or the broadcast address"]
    port: Annotated[Port, "UDP port of the peer"]
    own_port: Annotated[Port | None, "our own UDP port; `port` by default"] = None
    own_host: Annotated[
        Host | None, "our own address, which others reach, or `broadcast` comes from; all by default"
    ] = None
    broadcast: Annotated[bool, "`host` is a broadcast address; whoever sends to our port is heard"] = False
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the socket"] = 1 << 20

    def check(self) -> None:
        if self.broadcast and ":" in self.host:
            raise ValueError("broadcast: IPv6 has none: use multicast")
        if self.host == "255.255.255.255" and not self.broadcast:
            raise ValueError(f"{self.host} is a broadcast address: write broadcast: true")
        try:
            group = ip_address(self.host).is_multicast
        except ValueError:  # a name
            return
        if group:
            raise ValueError(f"{self.host} is a multicast group: write multicast in place of udp")

    @property
    def heard_at(self) -> int:
        """The port at which we hear."""
        return self.own_port or self.port

    @property
    def device(self) -> str:
        return f"{self.host}:{self.port}"

    def label(self) -> str:
        return f"udp {self.device}{' broadcast' if self.broadcast else ''}"

    def wire(self, machine: str) -> str:
        return f"udp {self.device}" if self.broadcast else f"udp {self.device} of {machine}"

    @property
    def shared(self) -> bool:
        return self.broadcast

    @property
    def confined(self) -> Confined | None:
        ours = _LOOPBACKS if self.own_host is None else (self.own_host,)
        if is_loopback(self.host) and self.heard_at == self.port and self.host in ours:
            advice = f"{self.port} is our own port there too: give own_port another number"
            return Confined("process", advice)
        if is_loopback(self.host):
            return Confined("machine", f"{self.host} is the machine's own address")
        return None

    def needs(self) -> Iterator[Need]:
        yield from host_needs(self.host)
        everywhere = "::" if ":" in self.host else "0.0.0.0"
        heard_on = everywhere if self.broadcast else self.own_host or everywhere
        yield Listening(heard_on, self.heard_at, udp=True)
        if self.broadcast and self.own_host is not None:
            yield Listening(self.own_host, 0, udp=True)

    def takes(self, node: int | None) -> Iterator[Taken]:
        yield Taken(f"UDP port {self.heard_at}", "" if self.broadcast else self.own_host or "")
