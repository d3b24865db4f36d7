"""The record of a serial line."""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import normpath
from typing import Annotated, ClassVar, Literal

from bridges.media.medium import CLOCK_S, SEAL_BYTES, Medium, Taken, Word
from bridges.media.uart.address import SERVERS, check_port, scheme_of, server_of
from bridges.media.uart.codec import wire_bytes_max
from bus.needs import Device, Library, Need, Probe, host_needs
from bus.schema import Check, Delay, Length, Path, QueueBytes, Range, Record, check_fields
from bus.wire.envelope import ENVELOPE_BYTES


def _check_nodes(nodes: tuple[int, ...]) -> None:
    if len(set(nodes)) != len(nodes):
        raise ValueError(f"a node is listed twice: {nodes}")


def _check_stopbits(stopbits: float) -> None:
    if stopbits not in (1, 1.5, 2):
        raise ValueError(f"stopbits are 1, 1.5 or 2, not {stopbits:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rs485(Record):
    """A shared two-wire pair: the gateway polls the nodes on it (wire format: UART)."""

    nodes: Annotated[
        tuple[Annotated[int, Range(1, 254)], ...],
        Length(1, 254),
        Check(_check_nodes, ""),
        "addresses of the nodes that are polled",
    ]
    answer_ms: Annotated[Delay, "how long a polled node may take to answer"] = 20
    turnaround_ms: Annotated[float, Range(0, 86_400_000), "silence between two senders"] = 1

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uart(Medium):
    """A serial line: COBS with CRC-32."""

    LINK: ClassVar = "bridges.media.uart.link:uart_link"
    SPEAKS: ClassVar = "bridges.media.uart.spoken:UartSpoken"
    items: ClassVar = ("bytes",)
    key: ClassVar = "uart"
    signs: ClassVar = True
    seal_bytes: ClassVar = SEAL_BYTES
    clock_s: ClassVar = CLOCK_S
    help: ClassVar = "a serial line"
    words: ClassVar = (
        Word(
            "uart", ("port",), "uart:/dev/ttyUSB0?baud=115200", "a serial port (also uart:socket://HOST:PORT)"
        ),
        Word(
            "rs485",
            ("port",),
            "rs485:/dev/ttyUSB0?nodes=1,2",
            "a shared pair whose nodes are polled",
            part="rs485",
        ),
    )

    SHORT: ClassVar = "port"
    port: Annotated[
        Path,
        "a device file (`/dev/serial/by-id/...` survives re-plugging), `hwgrep://VID:PID`, "
        "`socket://HOST:PORT` or `rfc2217://HOST:PORT`",
    ]
    baud: Annotated[int, Range(50, 20_000_000), "bits a second, 8 data bits"] = 115_200
    parity: Annotated[Literal["N", "E", "O", "M", "S"], "none, even, odd, mark or space"] = "N"
    stopbits: Annotated[float, Check(_check_stopbits, "1, 1.5 or 2"), "stop bits"] = 1
    rtscts: Annotated[bool, "hardware flow control"] = False
    echo: Annotated[bool, "a two-wire adapter that hears what it sends: its echo is taken out"] = False
    exclusive: Annotated[bool, "keep other programs off the port"] = True
    rs485: Annotated[Rs485 | None, "a polled, shared pair instead of a line for two"] = None
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the line"] = 65_536

    def check(self) -> None:
        check_port(self.port)
        if self.rtscts and scheme_of(self.port) == "socket":
            raise ValueError("rtscts has no effect here: set it at the serial server, or use rfc2217://")

    @property
    def device(self) -> str:
        return self.port

    @property
    def byte_s(self) -> float:
        """The seconds that one byte takes on the line: start, 8 data, parity and stop bits."""
        return (9 + (self.parity != "N") + self.stopbits) / self.baud

    @property
    def remote(self) -> bool:
        return scheme_of(self.port) in SERVERS

    def label(self) -> str:
        return f"uart {self.port} {self.baud}{' RS-485' if self.rs485 else ''}"

    @property
    def shared(self) -> bool:
        return self.rs485 is not None

    def takes(self, node: int | None) -> Iterator[Taken]:
        yield Taken(f"serial port {normpath(self.port)}")

    def needs(self) -> Iterator[Need]:
        yield Library("serial", "pyserial", "uart")
        scheme = scheme_of(self.port)
        if scheme in SERVERS:
            yield from host_needs(server_of(self.port)[0])
        elif scheme:
            yield Probe("bridges.media.uart.ports:trouble", (self.port,))
        else:
            yield Device(self.port, "plug it in, or look for its name in /dev/serial/by-id", self.exclusive)

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the line time of a message and its CRC-32 in COBS between two zeros, as the line is set."""
        return wire_bytes_max(size + (ENVELOPE_BYTES if trunk else 0)) * self.byte_s
