"""The settings of a UDP peer."""

from dataclasses import dataclass, field

from bridges.media.options import Options
from bus.schema import Host, Port, QueueBytes, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpOptions(Options):
    """The settings of a UDP peer."""

    host: Host = field(metadata=doc("the peer"))
    port: Port = field(metadata=doc("UDP port of the peer"))
    local_port: Port | None = field(default=None, metadata=doc("our own UDP port; `port` by default"))
    queue_bytes: QueueBytes = field(default=1 << 20, metadata=doc("bound of the queue to the socket"))

    @property
    def device(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def own_port(self) -> int:
        return self.local_port or self.port
