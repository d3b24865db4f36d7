"""The options of each medium that a bridge can join: one frozen dataclass a medium."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, Literal

from bus.schema import (
    AnyUrl,
    Bytes,
    CanNode,
    Check,
    Host,
    Length,
    Milliseconds,
    Name,
    Node,
    Path,
    Port,
    QueueBytes,
    Range,
    Scalar,
    doc,
)
from bus.transports.urls import TLS_SCHEMES, check_dial, split_url

QUEUE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls(Node):
    """Certificates for `tls+tcp://` and `wss://`: files in PEM."""

    ca_file: Path | None = field(default=None, metadata=doc("authorities to trust; the system's by default"))
    cert_file: Path | None = field(default=None, metadata=doc("own certificate; who listens needs one"))
    key_file: Path | None = field(default=None, metadata=doc("own key, if `cert_file` does not hold it too"))
    server_name: Host | None = field(
        default=None, metadata=doc("the name expected; the address's host by default")
    )
    require_peer_cert: bool = field(
        default=False, metadata=doc("turn away peers that `ca_file` did not sign")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Node):
    """An address outside this file: another appliance, or any SP bus."""

    SHORT = "address"
    address: AnyUrl = field(
        metadata=doc("`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`")
    )
    mode: Literal["dial", "listen"] = field(default="dial", metadata=doc("who opens the connection"))
    queue_bytes: Bytes | None = field(default=None, metadata=doc("bound of the queue to each peer"))
    message_bytes: Bytes | None = field(default=None, metadata=doc("longest message taken from a peer"))
    tls: Tls | None = field(default=None, metadata=doc("certificates, for `tls+tcp://` and `wss://`"))

    def __post_init__(self) -> None:
        check_tls(self.address, self.tls)
        if self.mode == "dial":
            check_dial(self.address)
        elif needs_certificate(self.address, self.tls):
            raise ValueError("listening with TLS needs tls: {cert_file: ...}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rs485(Node):
    """A shared two-wire pair: the gateway polls the nodes on it (wire format: UART)."""

    nodes: Annotated[tuple[Annotated[int, Range(0, 254)], ...], Length(1, 254)] = field(
        metadata=doc("addresses of the nodes that are polled")
    )
    answer_ms: Milliseconds = field(default=20, metadata=doc("how long a polled node may take to answer"))
    turnaround_ms: Milliseconds = field(default=1, metadata=doc("silence between two senders"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uart(Node):
    """A serial line: COBS with CRC-32."""

    SHORT = "port"
    port: Path = field(
        metadata=doc(
            "a device file (`/dev/serial/by-id/...` survives re-plugging), `hwgrep://VID:PID`, "
            "`socket://HOST:PORT` or `rfc2217://HOST:PORT`"
        )
    )
    baud: Annotated[int, Range(50, 20_000_000)] = field(
        default=115_200, metadata=doc("bits a second, 8 data bits")
    )
    parity: Literal["N", "E", "O"] = field(default="N", metadata=doc("none, even or odd"))
    stopbits: Annotated[int, Range(1, 2)] = field(default=1, metadata=doc("stop bits"))
    rtscts: bool = field(default=False, metadata=doc("hardware flow control"))
    echo: bool = field(
        default=False, metadata=doc("a two-wire adapter that hears what it sends: its echo is taken out")
    )
    exclusive: bool = field(default=True, metadata=doc("keep other programs off the port"))
    rs485: Rs485 | None = field(default=None, metadata=doc("a polled, shared pair instead of a line for two"))
    queue_bytes: QueueBytes = field(default=QUEUE_BYTES, metadata=doc("bound of the queue to the line"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Can(Node):
    """A CAN or CAN FD bus: Cyphal/CAN v1 message transfers, through python-can."""

    SHORT = "channel"
    channel: str | int = field(
        metadata=doc("as the interface names it: `can0`, `/dev/ttyACM0`, `239.74.163.2`")
    )
    interface: Name = field(default="socketcan", metadata=doc("python-can's name of the adapter"))
    fd: bool = field(default=False, metadata=doc("the controller is a CAN FD one"))
    bitrate: Annotated[int, Range(1_000, 20_000_000)] | None = field(
        default=None,
        metadata=doc("bits a second, nominal; SocketCAN takes it from `ip link`, `check` from here"),
    )
    data_bitrate: Annotated[int, Range(1_000, 20_000_000)] | None = field(
        default=None, metadata=doc("bits a second of the data phase, with `fd`")
    )
    bitrate_switch: bool = field(default=True, metadata=doc("send data at `data_bitrate`, with `fd`"))
    mixed: Literal["fd", "classic"] = field(
        default="fd", metadata=doc("what is sent where `fd` and classic nodes share the bus; both are heard")
    )
    node: CanNode | None = field(
        default=None, metadata=doc("Cyphal node id; the gateway's `node` by default")
    )
    subject: Annotated[int, Range(0, 8191)] = field(default=0x1234, metadata=doc("Cyphal subject id of TMQ"))
    queue_bytes: QueueBytes = field(default=QUEUE_BYTES, metadata=doc("bound of the queue to the bus"))
    options: Mapping[Name, Scalar] = field(
        default_factory=dict, metadata=doc("anything else the python-can interface takes, passed on as it is")
    )

    def __post_init__(self) -> None:
        if self.data_bitrate is not None and not self.fd:
            raise ValueError("data_bitrate needs fd: true")
        # Passed on beside these, a second value would end in a TypeError when the bus is opened.
        twice = {"channel", "interface", "fd", "bitrate", "data_bitrate"} & set(self.options)
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))} belongs beside options, not in it")


@dataclass(frozen=True, slots=True, kw_only=True)
class I2c(Node):
    """An I2C bus, this gateway its controller: a 64-byte mailbox in each target."""

    bus: Annotated[int, Range(0, 255)] = field(metadata=doc("number of `/dev/i2c-N`"))
    targets: Annotated[tuple[Annotated[int, Range(0x08, 0x77)], ...], Length(1, 112)] = field(
        metadata=doc("7-bit addresses")
    )
    poll_ms: Milliseconds = field(default=5, metadata=doc("time between two polls of an active target"))
    alert: Path | None = field(
        default=None,
        metadata=doc("active-low line that targets pull, `/dev/gpiochip0:17`: read instead of idle polls"),
    )
    clock_hz: Annotated[int, Range(1_000, 5_000_000)] = field(
        default=100_000, metadata=doc("bus clock; set by the system, told here for the budget")
    )
    queue_bytes: QueueBytes = field(default=QUEUE_BYTES, metadata=doc("bound of the queue to each target"))

    def __post_init__(self) -> None:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("the same target is listed twice")


def check_tls(url: str, tls: Tls | None) -> None:
    """Raises ValueError for certificates where nothing would look at them."""
    if tls and split_url(url).scheme not in TLS_SCHEMES:
        raise ValueError(f"tls is for {' and '.join(s + '://' for s in TLS_SCHEMES)} only")


def needs_certificate(url: str, tls: Tls | None) -> bool:
    """Whether a listener on `url` would have nothing to show."""
    return split_url(url).scheme in TLS_SCHEMES and not (tls and tls.cert_file)


def _check_group(text: str) -> None:
    if not ip_address(text).is_multicast:
        raise ValueError(f"{text} is no multicast group: 224.0.0.0/4 or ff00::/8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Multicast(Node):
    """A UDP multicast group: small frames share a datagram, long ones are fragmented."""

    group: Annotated[str, Check(_check_group, "a multicast address")] = field(
        metadata=doc("IPv4 or IPv6 group")
    )
    port: Port = field(metadata=doc("UDP port"))
    interface: str = field(metadata=doc("network interface or its address: always said, never guessed"))
    hops: Annotated[int, Range(0, 255)] = field(
        default=1, metadata=doc("TTL or hop limit; 0 stays on this machine")
    )
    datagram_bytes: Annotated[int, Range(64, 65_507)] = field(
        default=1400, metadata=doc("longest datagram sent; longer frames are fragmented")
    )
    queue_bytes: QueueBytes = field(default=1 << 20, metadata=doc("bound of the queue to the socket"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp(Node):
    """A TCP stream that is not SP: frames back to back, or COBS as a serial device server passes it on."""

    host: Host = field(metadata=doc("to dial, or to listen on"))
    port: Port = field(metadata=doc("TCP port"))
    mode: Literal["dial", "listen"] = field(default="dial", metadata=doc("who opens the connection"))
    framing: Literal["frames", "cobs"] = field(
        default="frames", metadata=doc("`cobs` behind ser2net and the like")
    )
    queue_bytes: QueueBytes = field(default=1 << 20, metadata=doc("bound of the queue to each peer"))
