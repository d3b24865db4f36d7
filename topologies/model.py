"""The whole topology file as values: frozen dataclasses, one for each kind of mapping in it.

The annotations are the schema (DESIGN section 7): the loader, the checker and the reference page all
read them here. Patterns stay as written, text or numbers; `bus.wire.pattern.Pattern(*names)` makes tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridges.media import MEDIA
from bridges.media.medium import Medium
from bus.leases.wire import HEARTBEATS, LEASE_MS, LEASE_MS_MAX
from bus.schema import (
    BusName,
    Bytes,
    CanNode,
    DialUrl,
    Host,
    Length,
    ListenUrl,
    Milliseconds,
    Name,
    Names,
    Node,
    OneOf,
    Path,
    Patterns,
    QueueBytes,
    Range,
    Seconds,
    Single,
    TapName,
    doc,
)
from bus.schema import Gateway as GatewayName
from bus.transports.options import Tls, check_tls, needs_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Node):
    """A machine that runs part of the system."""

    address: Host = field(default="127.0.0.1", metadata=doc("where the other gateways reach it"))
    node: CanNode | None = field(default=None, metadata=doc("its Cyphal node id on CAN"))
    origin: Annotated[int, Range(1, 0xFFFFFFFF)] | None = field(
        default=None, metadata=doc("its id in envelopes; random and kept by default")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen(Node):
    """An address that a bus offers to peers."""

    SHORT = "url"
    url: ListenUrl = field(metadata=doc("`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`"))
    trunk: bool = field(default=False, metadata=doc("for other appliances: envelopes are kept here"))
    queue_bytes: Bytes | None = field(
        default=None, metadata=doc("bound of the queue to each peer; the bus's by default")
    )
    message_bytes: Bytes | None = field(
        default=None, metadata=doc("longest message taken; the bus's by default")
    )
    tls: Tls | None = field(default=None, metadata=doc("certificates, for `tls+tcp://` and `wss://`"))

    def __post_init__(self) -> None:
        check_tls(self.url, self.tls)
        if needs_certificate(self.url, self.tls):
            raise ValueError("listening with TLS needs tls: {cert_file: ...}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial(Node):
    """Another bus's address, which this bus keeps a connection to."""

    SHORT = "url"
    url: DialUrl = field(metadata=doc("an address of a bus, in this file or not"))
    trunk: bool = field(default=False, metadata=doc("the other end is an appliance: envelopes are kept here"))
    queue_bytes: Bytes | None = field(
        default=None, metadata=doc("bound of the queue to it; the bus's by default")
    )
    message_bytes: Bytes | None = field(
        default=None, metadata=doc("longest message taken; the bus's by default")
    )
    tls: Tls | None = field(default=None, metadata=doc("certificates, for `tls+tcp://` and `wss://`"))

    def __post_init__(self) -> None:
        check_tls(self.url, self.tls)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpec(Node):
    """A TMQ broker; bridges and clients take them in the order of the file."""

    on: GatewayName = field(metadata=doc("the gateway that runs it"))
    listen: Annotated[tuple[Listen, ...], Length(1, 64), Single()] = field(metadata=doc("its addresses"))
    heartbeat_ms: Milliseconds = field(default=1000, metadata=doc("a peer silent for three of these is gone"))
    lease_ms: Annotated[int, Range(1, LEASE_MS_MAX)] = field(
        default=LEASE_MS,
        metadata=doc(
            f"how long a bridge may forward on one lease; it renews it {HEARTBEATS:g} times in that"
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BusSpec(Node):
    """A bus: every message in goes out to all peers but its sender."""

    on: GatewayName = field(metadata=doc("the gateway that runs it"))
    listen: Annotated[tuple[Listen, ...], Length(0, 64), Single()] = field(
        default=(), metadata=doc("its addresses")
    )
    dial: Annotated[tuple[Dial, ...], Length(0, 64), Single()] = field(
        default=(), metadata=doc("other buses to join into one with this")
    )
    queue_bytes: Bytes = field(default=8 << 20, metadata=doc("bound of the queue to each peer"))
    message_bytes: Bytes = field(
        default=1 << 20, metadata=doc("longest message taken; who sends a longer one is closed")
    )

    def __post_init__(self) -> None:
        links: list[Listen | Dial | BusSpec] = [self, *self.listen, *self.dial]
        for link in links:
            queue_bytes, message_bytes = self.limits(link)
            if queue_bytes < message_bytes:
                raise ValueError("queue_bytes must be at least message_bytes: else the longest never fits")

    def limits(self, link: "Listen | Dial | BusSpec") -> tuple[int, int]:
        """`queue_bytes` and `message_bytes` of one of its addresses: its own, or else the bus's."""
        return link.queue_bytes or self.queue_bytes, link.message_bytes or self.message_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Lists of patterns; a list written alone holds both ways."""

    SHORT = "both"
    both: Patterns = field(default=(), metadata=doc("what enters and what leaves"))
    inward: Patterns = field(default=(), metadata=doc("what enters the bridge here", key="in"))
    outward: Patterns = field(default=(), metadata=doc("what leaves the bridge here", key="out"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed(Node):
    """A policy for a slow medium that is given more than it can carry."""

    SHORT = "policy"
    policy: Literal["newest", "oldest", "conflate"] = field(
        metadata=doc("drop what comes, drop what waits longest, or keep the latest frame of each pattern")
    )
    age_ms: Milliseconds | None = field(default=None, metadata=doc("frames that waited longer are not sent"))
    queue_bytes: QueueBytes | None = field(
        default=None, metadata=doc("bound of the queue; the medium's by default")
    )
    rate: Annotated[float, Range(0.001, 1e9)] | None = field(
        default=None, metadata=doc("frames a second at most")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Node):
    """One side of a bridge: a bus of this file or one medium, with its policies."""

    bus: BusName | None = field(default=None, metadata=doc("a bus of this file, on whichever gateway"))
    medium: Annotated[Medium | None, OneOf("a side", MEDIA, ("bus",))] = None
    trunk: bool | None = field(
        default=None,
        metadata=doc("envelopes are kept here; by default on a bus that has a trunk, and nowhere else"),
    )
    segment: Name | None = field(
        default=None,
        metadata=doc("name of the wire, where several gateways share it and `check` should know"),
    )
    pattern: Names = field(
        default=(), metadata=doc("only frames that start with this cross here; short for one `allow`")
    )
    allow: Filter = field(default=Filter(), metadata=doc("only these patterns cross here"))
    deny: Filter = field(default=Filter(), metadata=doc("these patterns do not cross here"))
    shed: Shed | None = field(default=None, metadata=doc("what happens above the medium's capacity"))

    def __post_init__(self) -> None:
        if self.pattern and (self.allow.both or self.allow.inward or self.allow.outward):
            raise ValueError("pattern and allow on one side: write the pattern into allow")
        if self.shed and self.bus:
            raise ValueError("nothing waits for a bus: give the shed policy to the side that is slow")

    @property
    def kind(self) -> str:
        """The key that says what it joins."""
        return "bus" if self.medium is None else self.medium.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Node):
    """A promise of the applications: so many frames of a pattern cross this bridge."""

    pattern: Names = field(default=(), metadata=doc("the frames that are meant"))
    frames_per_s: Annotated[float, Range(0.001, 1e9)] = field(
        metadata=doc("frames a second, all senders together")
    )
    data_bytes: Annotated[int, Range(0, 2048)] = field(default=8, metadata=doc("data in each"))
    tokens: Annotated[int, Range(0, 255)] | None = field(
        default=None, metadata=doc("tokens in each; as many as in the pattern by default")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSpec(Node):
    """A bridge: carries frames between media, with policies for each."""

    on: Annotated[tuple[GatewayName, ...], Length(1, 64), Single()] = field(
        metadata=doc("the gateway, or several, best first: they stand in for each other")
    )
    join: Annotated[tuple[Side, ...], Length(2, 64)] = field(metadata=doc("what it joins"))
    pattern: Names = field(default=(), metadata=doc("only frames that start with this cross"))
    rates: tuple[Rate, ...] = field(
        default=(), metadata=doc("promised traffic, held against what the media carry")
    )

    def __post_init__(self) -> None:
        if len(set(self.on)) != len(self.on):
            raise ValueError("the same gateway is listed twice in on")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec(Node):
    """Something that serves buses and bridges: so far a tap, which records what crosses (docs/capture.md)."""

    on: GatewayName = field(metadata=doc("the gateway that runs it"))
    tap: Annotated[tuple[TapName, ...], Length(1, 64), Single()] = field(
        metadata=doc("the buses and bridges of that gateway to record")
    )
    directory: Path = field(metadata=doc("where captures are written"))
    pattern: Names = field(default=(), metadata=doc("only frames that start with this are recorded"))
    file_bytes: Bytes = field(default=64 << 20, metadata=doc("size at which a new file begins"))
    file_s: Seconds = field(default=60, metadata=doc("age at which a new file begins"))
    keep_bytes: Bytes = field(default=1 << 30, metadata=doc("size at which the oldest file is deleted"))
    keep_days: Annotated[float, Range(0.001, 36500)] | None = field(
        default=None, metadata=doc("age at which a file is deleted; by size alone by default")
    )
    queue_bytes: Annotated[int, Range(1 << 20, 1 << 34)] = field(
        default=32 << 20, metadata=doc("what may wait to be written; more is not recorded, and counted")
    )
    yields: bool = field(
        default=True, metadata=doc("write only in spare processor time, and rest where that is too little")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology(Node):
    """The whole system: each gateway runs its part of it."""

    name: Name = field(metadata=doc("what the system is called"))
    gateways: Annotated[Mapping[Name, Gateway], Length(1, 1024)] = field(metadata=doc("the machines"))
    brokers: Mapping[Name, BrokerSpec] = field(default_factory=dict, metadata=doc("they choose who bridges"))
    buses: Mapping[Name, BusSpec] = field(default_factory=dict, metadata=doc("buses, by name"))
    bridges: Mapping[Name, BridgeSpec] = field(default_factory=dict, metadata=doc("bridges, by name"))
    devices: Mapping[Name, DeviceSpec] = field(default_factory=dict, metadata=doc("devices, by name"))

    @property
    def sections(self) -> dict[str, Mapping[str, BrokerSpec | BusSpec | BridgeSpec | DeviceSpec]]:
        """Everything that gateways run, by the key of its section in the file."""
        return {
            "brokers": self.brokers,
            "buses": self.buses,
            "bridges": self.bridges,
            "devices": self.devices,
        }
