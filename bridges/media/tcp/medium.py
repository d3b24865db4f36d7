"""The record of a TCP stream of frames, without SP."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.medium import Medium, Taken, Word
from bridges.media.tcp.options import TcpOptions

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp(TcpOptions, Medium):
    """A TCP stream that is not SP: frames back to back, or COBS as a serial device server passes it on."""

    key: ClassVar = "tcp"
    help: ClassVar = "a TCP stream"
    words: ClassVar = (
        Word("frames", ("host", "port"), "frames:HOST:PORT?mode=dial", "a TCP stream of frames, without SP"),
    )
    deaf: ClassVar = True

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.shed_pipe import staged
        from bridges.media.tcp.link import TcpFramesLink

        return staged(TcpFramesLink(self, **retry), shed)

    def label(self) -> str:
        return f"tcp {self.mode} {self.device}"

    def takes(self, node: int | None) -> Iterator[Taken]:
        if self.mode == "listen" and self.port:
            yield Taken(f"TCP port {self.port}", self.host)
