"""The settings of a serial line, and of a polled RS-485 pair."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from bridges.media.options import Options
from bridges.media.uart.address import check_port
from bus.schema import Check, Delay, Length, Node, Path, QueueBytes, Range, check_fields, doc


def _check_nodes(nodes: tuple[int, ...]) -> None:
    if len(set(nodes)) != len(nodes):
        raise ValueError(f"a node is listed twice: {nodes}")


def _check_stopbits(stopbits: float) -> None:
    if stopbits not in (1, 1.5, 2):
        raise ValueError(f"stopbits are 1, 1.5 or 2, not {stopbits:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rs485(Node):
    """A shared two-wire pair: the gateway polls the nodes on it (wire format: UART)."""

    nodes: Annotated[tuple[Annotated[int, Range(1, 254)], ...], Length(1, 254), Check(_check_nodes, "")] = (
        field(metadata=doc("addresses of the nodes that are polled"))
    )
    answer_ms: Delay = field(default=20, metadata=doc("how long a polled node may take to answer"))
    turnaround_ms: Annotated[float, Range(0, 86_400_000)] = field(
        default=1, metadata=doc("silence between two senders")
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UartOptions(Options):
    """The settings of a serial line."""

    SHORT: ClassVar = "port"
    port: Path = field(
        metadata=doc(
            "a device file (`/dev/serial/by-id/...` survives re-plugging), `hwgrep://VID:PID`, "
            "`socket://HOST:PORT` or `rfc2217://HOST:PORT`"
        )
    )
    baud: Annotated[int, Range(50, 20_000_000)] = field(
        default=115_200, metadata=doc("bits a second, 8 data bits")
    )
    parity: Literal["N", "E", "O", "M", "S"] = field(
        default="N", metadata=doc("none, even, odd, mark or space")
    )
    stopbits: Annotated[float, Check(_check_stopbits, "1, 1.5 or 2")] = field(
        default=1, metadata=doc("stop bits")
    )
    rtscts: bool = field(default=False, metadata=doc("hardware flow control"))
    echo: bool = field(
        default=False, metadata=doc("a two-wire adapter that hears what it sends: its echo is taken out")
    )
    exclusive: bool = field(default=True, metadata=doc("keep other programs off the port"))
    rs485: Rs485 | None = field(default=None, metadata=doc("a polled, shared pair instead of a line for two"))
    queue_bytes: QueueBytes = field(default=65_536, metadata=doc("bound of the queue to the line"))

    def check(self) -> None:
        check_port(self.port)

    @property
    def device(self) -> str:
        return self.port

    @property
    def byte_s(self) -> float:
        """Seconds that one byte takes on the line: start, 8 data, parity and stop bits."""
        return (9 + (self.parity != "N") + self.stopbits) / self.baud
