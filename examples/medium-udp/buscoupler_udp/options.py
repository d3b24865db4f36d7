"""The settings of a UDP peer."""

from dataclasses import dataclass
from typing import Annotated

from bridges.media.options import Options
from bus.schema import Host, Port, QueueBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpOptions(Options):
    """The settings of a UDP peer."""

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
