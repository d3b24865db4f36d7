"""The settings of a TCP stream of frames, without SP."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridges.media.options import Options
from bus.schema import Check, QueueBytes, Range, check_host, doc


def _check_host(host: str) -> None:
    if host != "*":
        check_host(host)


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpOptions(Options):
    """The settings of a TCP stream of frames, without SP."""

    host: Annotated[str, Check(_check_host, "an IP address or host name")] = field(
        metadata=doc("to dial, or to listen on; `*` listens on every interface")
    )
    port: Annotated[int, Range(0, 65_535)] = field(metadata=doc("TCP port; 0 listens on any"))
    mode: Literal["dial", "listen"] = field(default="dial", metadata=doc("who opens the connection"))
    framing: Literal["frames", "cobs"] = field(
        default="frames", metadata=doc("`cobs` behind ser2net and the like")
    )
    queue_bytes: QueueBytes = field(default=1 << 20, metadata=doc("bound of the queue to each peer"))

    def check(self) -> None:
        if self.mode == "dial" and not self.port:
            raise ValueError("port 0 can be listened on, not dialled")

    @property
    def device(self) -> str:
        return f"{self.host}:{self.port}"
