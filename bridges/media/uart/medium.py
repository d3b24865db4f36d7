"""The record of a serial line."""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import normpath
from typing import Annotated, Any, ClassVar, Final, Literal

from bridges.items import Exchange
from bridges.media.medium import CLOCK_S, SEAL_BYTES, Medium, Taken, Word
from bridges.media.uart.address import SERVERS, check_port, scheme_of, server_of
from bridges.media.uart.codec import wire_bytes_max
from bus.key_types import Delay, Path, QueueBytes
from bus.needs import Device, Library, Need, Probe, host_needs
from bus.schema import Check, Length, Range, Record, check_fields
from bus.text import closest
from bus.wire.envelope import ENVELOPE_BYTES

BAUDS: Final = (
    *(50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 7200, 9600, 10_400, 14_400, 19_200),
    *(28_800, 31_250, 38_400, 57_600, 74_880, 76_800, 100_000, 115_200, 125_000, 128_000, 153_600),
    *(187_500, 230_400, 250_000, 256_000, 460_800, 500_000, 576_000, 921_600, 1_000_000, 1_500_000),
    *(2_000_000, 2_500_000, 3_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000, 12_000_000),
)
"""Rates that devices use: those of UARTs, and of MIDI, K-line, DMX, PROFIBUS and S.BUS."""


def _check_nodes(nodes: tuple[int, ...]) -> None:
    if len(set(nodes)) != len(nodes):
        raise ValueError(f"a node is listed twice: {nodes}")


def _check_stopbits(stopbits: float) -> None:
    if stopbits not in (1, 1.5, 2):
        raise ValueError(f"stopbits are 1, 1.5 or 2, not {stopbits:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rs485(Record):
    """A shared two-wire pair: the gateway polls the nodes on it (wire format: UART).

    With a protocol there are no nodes, and the kernel's driver switches the transceiver.
    """

    nodes: Annotated[
        Annotated[tuple[Annotated[int, Range(1, 254)], ...], Length(1, 254), Check(_check_nodes, "")] | None,
        "addresses of the nodes that are polled; required without a protocol",
    ] = None
    answer_ms: Annotated[Delay, "how long a polled node may take to answer"] = 20
    turnaround_ms: Annotated[float, Range(0, 86_400_000), "silence between two senders"] = 1
    kernel: Annotated[
        bool, "the kernel's driver switches the transceiver (TIOCSRS485); always so with a protocol"
    ] = False
    rts_on_send: Annotated[bool, "kernel: RTS is high while it sends, and low after it"] = True
    before_ms: Annotated[float, Range(0, 1000), "kernel: pause before the first bit"] = 0
    after_ms: Annotated[float, Range(0, 1000), "kernel: pause after the last bit"] = 0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uart(Medium):
    """A serial line: COBS with CRC-32."""

    LINK: ClassVar = "bridges.media.uart.link:uart_link"
    SPEAKS: ClassVar = "bridges.media.uart.spoken:UartSpoken"
    items: ClassVar = ("bytes",)
    tmq_items: ClassVar = "bytes"
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
            needed=("nodes",),
            part="rs485",
        ),
    )

    SHORT: ClassVar = "port"
    port: Annotated[
        Path,
        "a device file (`/dev/serial/by-id/...` survives re-plugging), `hwgrep://VID:PID`, "
        "`socket://HOST:PORT` or `rfc2217://HOST:PORT`",
    ]
    baud: Annotated[int, Range(50, 20_000_000), "bits a second"] = 115_200
    data_bits: Annotated[int, Range(7, 8), "bits of a byte; 7 with a protocol only"] = 8
    parity: Annotated[Literal["N", "E", "O", "M", "S"], "none, even, odd, mark or space"] = "N"
    stopbits: Annotated[float, Check(_check_stopbits, "1, 1.5 or 2"), "stop bits"] = 1
    rtscts: Annotated[bool, "hardware flow control"] = False
    xonxoff: Annotated[bool, "software flow control, with a protocol whose bytes are never 0x11 or 0x13"] = (
        False
    )
    dtr: Annotated[bool | None, "level of DTR at opening; left alone by default: it resets many boards"] = (
        None
    )
    rts: Annotated[bool | None, "level of RTS at opening; left alone by default"] = None
    echo: Annotated[bool, "a two-wire adapter that hears what it sends: its echo is taken out"] = False
    exclusive: Annotated[bool, "keep other programs off the port"] = True
    rs485: Annotated[Rs485 | None, "a polled, shared pair instead of a line for two"] = None
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the line"] = 65_536
    gather_ms: Annotated[
        float,
        Range(0, 20),
        "without a protocol: while bytes keep coming, read them once in this time, for less processor time; "
        "the first after a pause is read at once",
    ] = 0

    def check(self) -> None:
        check_port(self.port)
        if self.rtscts and scheme_of(self.port) == "socket":
            raise ValueError("rtscts has no effect here: set it at the serial server, or use rfc2217://")
        if without := self._ineffective():
            raise ValueError(f"{without} has no effect here: set it at the serial server, or use rfc2217://")
        if self.rts is not None and (self.rtscts or self.transceiver is not None):
            raise ValueError("rts is not free: flow control or the switching of RS-485 has it")
        if self.transceiver is not None and self.remote:
            raise ValueError("rs485 has no effect here: set it at the serial server")
        if self.gather_ms and self.rs485 is not None and self.rs485.nodes:
            raise ValueError("gather_ms has no effect on a pair whose nodes are polled: leave it out")

    def _ineffective(self) -> str:
        """Return the setting that a connection to a server that forwards bytes cannot have; "" if none."""
        if scheme_of(self.port) != "socket":
            return ""
        given = {"data_bits": self.data_bits != 8, "xonxoff": self.xonxoff}
        given |= {"dtr": self.dtr is not None, "rts": self.rts is not None}
        return next((key for key, is_given in given.items() if is_given), "")

    def unusual(self) -> str:
        if self.baud in BAUDS or self.remote:
            return ""
        near = closest(str(self.baud), map(str, BAUDS), 0.6)
        hint = f"; did you mean {near}?" if near else ""
        return f"{self.baud} is no usual baud rate: both ends need exactly the same{hint}"

    def unfit(self, spoken: bool) -> str:
        if spoken:
            polls = self.rs485 is not None and self.rs485.nodes
            if self.gather_ms:
                return "with a protocol nothing gathers: leave gather_ms out"
            return "with a protocol no nodes are polled: leave nodes out of rs485" if polls else ""
        if self.rs485 is not None and not self.rs485.nodes:
            return "rs485 needs nodes, or a protocol beside it"
        if self.data_bits != 8:
            return "TMQ needs 8 data bits: name a protocol, or leave data_bits out"
        return "TMQ frames hold the bytes of xonxoff: use rtscts, or name a protocol" if self.xonxoff else ""

    @property
    def transceiver(self) -> dict[str, Any] | None:
        """The settings of a driver that switches a transceiver, as pyserial's RS485Settings names them."""
        pair = self.rs485
        if pair is None or (pair.nodes and not pair.kernel):
            return None
        return {
            "rts_level_for_tx": pair.rts_on_send,
            "rts_level_for_rx": not pair.rts_on_send,
            "loopback": self.echo,
            "delay_before_tx": pair.before_ms / 1000,
            "delay_before_rx": pair.after_ms / 1000,
        }

    @property
    def device(self) -> str:
        return self.port

    @property
    def is_line(self) -> bool:
        return True

    @property
    def byte_s(self) -> float:
        """The seconds that one byte takes on the line: start, data, parity and stop bits."""
        return (1 + self.data_bits + (self.parity != "N") + self.stopbits) / self.baud

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

    def item_seconds(self, item: Any) -> float | None:
        is_known = isinstance(item, Exchange) and not self.port.startswith("socket://")
        return item.seconds(self.byte_s) if is_known else None

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the line time of a message and its CRC-32 in COBS between two zeros, as the line is set."""
        return wire_bytes_max(size + (ENVELOPE_BYTES if trunk else 0)) * self.byte_s
