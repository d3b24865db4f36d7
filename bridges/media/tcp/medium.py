"""The record of a TCP stream of frames, without SP."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bridges.media.medium import Medium, Taken, Word
from bus.key_types import QueueBytes
from bus.needs import Listening, Need, host_needs
from bus.schema import Check, Range
from bus.urls import check_host, is_wildcard


def _check_host(host: str) -> None:
    if host != "*":
        check_host(host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp(Medium):
    """A TCP stream without SP: frames back to back, or COBS as a serial device server passes it on."""

    LINK: ClassVar = "bridges.media.tcp.link:tcp_link"
    SPEAKS: ClassVar = "bridges.media.tcp.spoken:tcp_spoken"
    items: ClassVar = ("bytes",)
    unrecorded: ClassVar = "`tshark -i any` records its connections"
    key: ClassVar = "tcp"
    help: ClassVar = "a TCP stream"
    words: ClassVar = (
        Word("frames", ("host", "port"), "frames:HOST:PORT?mode=dial", "a TCP stream of frames, without SP"),
    )
    deaf: ClassVar = True

    host: Annotated[
        str,
        Check(_check_host, "an IP address or host name"),
        "to dial, or to listen on; `*` listens on every interface",
    ]
    port: Annotated[int, Range(0, 65_535), "TCP port; 0 listens on any"]
    mode: Annotated[Literal["dial", "listen"], "who opens the connection"] = "dial"
    framing: Annotated[Literal["frames", "cobs"], "`cobs` behind ser2net and the like"] = "frames"
    queue_bytes: Annotated[QueueBytes, "bound of the queue to each peer"] = 1 << 20

    def check(self) -> None:
        if self.mode == "dial" and not self.port:
            raise ValueError("port 0 can be listened on, not dialled")
        if self.mode == "dial" and is_wildcard(self.host):
            raise ValueError(f"{self.host} can be listened on, not dialled: name a host")

    def unfit(self, spoken: bool) -> str:
        coded = spoken and self.framing != "frames"
        return "with a protocol there are no frames of TMQ: leave framing out" if coded else ""

    @property
    def device(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def remote(self) -> bool:
        return self.mode == "dial"

    def label(self) -> str:
        return f"tcp {self.mode} {self.device}"

    def takes(self, node: int | None) -> Iterator[Taken]:
        if self.mode == "listen" and self.port:
            yield Taken(f"TCP port {self.port}", self.host)

    def lets_in(self) -> Iterator[str]:
        if self.mode == "listen":
            yield self.host

    def needs(self) -> Iterator[Need]:
        if self.mode == "dial":
            yield from host_needs(self.host)
        elif self.port:
            yield Listening(self.host, self.port)
