"""The records of a topology file: a frozen dataclass for each kind of mapping in it.

Their annotations are the schema (docs/design.md), which the loader, the checker and the reference page use.
Patterns stay as written, text or numbers; `bus.wire.pattern.Pattern(*names)` makes tokens from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple, TypeVar

from bridges.media import MEDIA
from bridges.media.medium import Medium
from bus.leases.settings import BrokerSettings
from bus.schema import (
    BrokerListenUrl,
    BusName,
    ByGateway,
    Bytes,
    CanNode,
    DialUrl,
    Key,
    KindOf,
    Length,
    ListenUrl,
    Milliseconds,
    Name,
    Names,
    Node,
    OneOf,
    Origin,
    Path,
    Patterns,
    PeerHost,
    QueueBytes,
    Range,
    Single,
)
from bus.schema import Gateway as GatewayName
from bus.transports.options import (
    MESSAGE_BYTES,
    QUEUE_BYTES,
    Tls,
    check_age,
    check_fit,
    check_keys,
    check_last_values,
    check_limits,
    check_origins,
    check_tls,
)
from bus.transports.peers import Peer, check_peers
from bus.urls import BEACON, split_url
from devices import DEVICES
from devices.device import DeviceSpec
from topologies.status import PLAIN, StatusSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Node):
    """A machine that runs part of the system."""

    address: Annotated[PeerHost, "its address for the other gateways"] = "127.0.0.1"
    node: Annotated[CanNode | None, "its Cyphal node id on CAN"] = None
    origin: Annotated[
        Annotated[int, Range(1, 0xFFFFFFFF)] | None, "its id in envelopes; by default random, and kept"
    ] = None
    memory_bytes: Annotated[
        Annotated[int, Range(1 << 20, 1 << 44)] | None,
        "what each of its processes may hold for all stream peers together; by default a quarter of the "
        "machine's memory",
    ] = None
    status: Annotated[StatusSpec, "its status page and metrics (docs/status.md)"] = PLAIN


OwnKeys = Annotated[
    Annotated[tuple[Path, ...], Length(0, 16), Single()] | None,
    "files of keys for this trunk; those of the file by default, `[]` for none (docs/wire/signed.md)",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(Node):
    """An address at which a bus listens or that it dials."""

    SHORT = "url"
    url: str
    trunk: Annotated[bool, "for other appliances: envelopes are kept here"] = False
    queue_bytes: Annotated[Bytes | None, "bound of the queue to each peer; the bus's by default"] = None
    message_bytes: Annotated[
        Bytes | None, "longest message accepted, without its envelope; the bus's by default"
    ] = None
    tls: Annotated[Tls | None, "certificates, for `tls+tcp://` and `wss://`"] = None
    keys: OwnKeys = None
    age_ms: Annotated[
        Milliseconds | None,
        "what waits longer on this trunk is dropped, and a peer that takes nothing for so long is closed; by "
        "default 4000 where trunks form a ring, else never (docs/wire/envelope.md)",
    ] = None

    def __post_init__(self) -> None:
        check_age(self.url, self.trunk, self.age_ms)
        check_limits(self.url, self.queue_bytes, self.message_bytes)
        check_keys(self.url, self.trunk, self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen(Address):
    """An address at which a bus accepts peers."""

    url: Annotated[ListenUrl, "`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`"]
    beacon: Annotated[bool, "announce it once a second on the LAN (docs/beacon.md)"] = False
    last_values: Annotated[
        bool, "give the newest frame of each pattern to every peer that connects (docs/values.md)"
    ] = False
    origins: Annotated[
        tuple[Origin, ...],
        Length(0, 64),
        Single(),
        "pages of other hosts that may connect to `ws://` and `wss://` (docs/wire/websocket.md)",
    ] = ()
    peers: Annotated[
        tuple[Peer, ...] | None,
        Length(1, 1024),
        Single(),
        "who may join here, and what they may send and hear; everybody by default (docs/policies.md)",
    ] = None

    def __post_init__(self) -> None:
        Address.__post_init__(self)  # `slots` makes the class anew, and `super()` would refer to the old one
        check_last_values(self.url, self.trunk, self.last_values)
        check_tls(self.url, self.tls, listens=True)
        check_origins(self.url, self.origins)
        check_peers(self.url, self.tls, self.peers or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial(Address):
    """The address of another bus, to which this bus keeps a connection."""

    url: Annotated[
        DialUrl,
        "an address of a bus, in this file or not; or `beacon://SYSTEM/BUS`, a trunk that announces itself "
        "on the LAN by these names",
    ]

    def __post_init__(self) -> None:
        Address.__post_init__(self)
        if split_url(self.url).scheme == BEACON and not self.trunk:
            raise ValueError(f"{self.url} may be any machine, so rings can form: write trunk: true beside it")
        check_tls(self.url, self.tls, listens=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress(Node):
    """An address at which a broker listens."""

    SHORT = "url"
    url: Annotated[
        BrokerListenUrl, "`tcp://HOST:PORT` or `tls+tcp://HOST:PORT`; HOST is an IPv4 address or a name"
    ]
    beacon: Annotated[bool, "announce it once a second on the LAN (docs/beacon.md)"] = False
    tls: Annotated[Tls | None, "certificates, for `tls+tcp://`; gateways dial it with the same paths"] = None

    def __post_init__(self) -> None:
        check_tls(self.url, self.tls, listens=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpec(BrokerSettings):
    """A TMQ broker. Bridges and clients try the brokers in the order of the file."""

    on: Annotated[GatewayName, "the gateway that runs it"]
    listen: Annotated[
        tuple[BrokerAddress, ...],
        Length(1, 64),
        Single(),
        "its addresses; bridges dial the first with TLS, if there is one; all others the first without",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BusSpec(Node):
    """A bus, which sends every message to all peers except its sender."""

    on: Annotated[GatewayName, "the gateway that runs it"]
    listen: Annotated[tuple[Listen, ...], Length(0, 64), Single(), "its addresses"] = ()
    dial: Annotated[tuple[Dial, ...], Length(0, 64), Single(), "other buses to join into one"] = ()
    trunks: Annotated[
        tuple[BusName, ...],
        Length(0, 1024),
        Single(),
        "buses of this file to join: of two, one dials the trunk address of the other, with its `tls`",
    ] = ()
    queue_bytes: Annotated[Bytes, "bound of the queue to each peer"] = QUEUE_BYTES
    message_bytes: Annotated[
        Bytes, "longest message accepted, without its envelope; a longer one ends the connection"
    ] = MESSAGE_BYTES

    def __post_init__(self) -> None:
        if len(set(self.trunks)) != len(self.trunks):
            raise ValueError("the same bus is listed twice in trunks")
        links: tuple[Address | BusSpec, ...] = (self, *self.listen, *self.dial)
        for link in links:
            check_fit(*self.limits(link))

    def limits(self, link: "Address | BusSpec") -> tuple[int, int]:
        """Return `queue_bytes` and `message_bytes` of an address; those of the bus by default."""
        return link.queue_bytes or self.queue_bytes, link.message_bytes or self.message_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Lists of patterns. A list without `in` or `out` applies to both directions."""

    SHORT = "both"
    both: Annotated[Patterns, "patterns for both directions"] = ()
    inward: Annotated[Patterns, "patterns for frames that enter the bridge here", Key("in")] = ()
    outward: Annotated[Patterns, "patterns for frames that leave the bridge here", Key("out")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed(Node):
    """A shed policy: what to drop if a medium gets more frames than it can carry."""

    SHORT = "policy"
    policy: Annotated[
        Literal["newest", "oldest", "conflate"],
        "drop the newest, drop the oldest, or keep only the latest frame of each pattern",
    ]
    age_ms: Annotated[Milliseconds | None, "frames that waited longer are dropped"] = None
    queue_bytes: Annotated[QueueBytes | None, "bound of the queue; the medium's by default"] = None
    rate: Annotated[Annotated[float, Range(0.001, 1e9)] | None, "most frames per second"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Node):
    """One side of a bridge: a bus of this file or one medium, with its policies."""

    bus: Annotated[BusName | None, "a bus of this file, on any gateway"] = None
    medium: Annotated[Medium | None, OneOf("a side", MEDIA, ("bus",))] = None
    trunk: Annotated[bool | None, "envelopes are kept here; by default only on a bus that has a trunk"] = None
    segment: Annotated[
        Name | None, "name of the wire; tells `check` that sides with the same name share a wire"
    ] = None
    pattern: Annotated[Names, "only frames that start with this cross here; short for one `allow`"] = ()
    allow: Annotated[Filter, "only these patterns cross here"] = Filter()
    deny: Annotated[Filter, "these patterns do not cross here"] = Filter()
    shed: Annotated[Shed | None, "what to drop above the capacity of the medium"] = None
    keys: OwnKeys = None

    def __post_init__(self) -> None:
        if self.bus is None and self.medium is None:
            raise ValueError("bus has no name: write the name of a bus")
        if self.pattern and (self.allow.both or self.allow.inward or self.allow.outward):
            raise ValueError("pattern and allow on one side: write the pattern into allow")
        if self.keys is not None and self.bus:
            raise ValueError("a bus is signed at its addresses: give the keys to these")
        if self.shed and self.bus:
            raise ValueError("nothing waits for a bus: give the shed policy to the side that is slow")
        if self.medium is not None:
            _check_fit(self, self.medium)

    @property
    def allowed(self) -> Filter:
        """The patterns of frames that may cross, by words of the side or its medium; an empty list is all."""
        passing = self.medium and self.medium.passing
        if passing:
            return Filter(inward=passing.inward, outward=passing.outward)
        return Filter(both=(self.pattern,)) if self.pattern else self.allow

    @property
    def denied(self) -> Filter:
        """The patterns of frames that do not cross: `deny`, and all where the medium lets nothing through."""
        passing, deny = self.medium and self.medium.passing, self.deny
        if not passing:
            return deny
        inward = deny.inward if passing.inward else ((),)
        return replace(deny, inward=inward, outward=deny.outward if passing.outward else ((),))

    @property
    def kind(self) -> str:
        """Key of what the side joins: `bus` or a medium."""
        return "bus" if self.medium is None else self.medium.key


def _check_fit(side: Side, medium: Medium) -> None:
    """Raise ValueError if words of a side do not go with its medium."""
    passing = medium.passing
    if passing and (side.pattern or side.allow != Filter()):
        keys = " and ".join(passing.keys)
        raise ValueError(f"{keys} of {medium.key} say what crosses here: leave pattern and allow out")
    if side.trunk and medium.plain:
        raise ValueError(
            f"{medium.key} carries no envelopes, so this side cannot be a trunk: leave trunk out"
        )
    if side.keys is not None and not side.trunk:
        raise ValueError("keys have no effect here: only a trunk is signed, so write trunk: true beside them")
    if side.keys and not medium.signs:
        raise ValueError(f"keys have no effect here: nothing is signed on {medium.key}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Node):
    """A promise of the applications: how many frames of a pattern cross this bridge."""

    pattern: Annotated[Names, "pattern of the frames"] = ()
    frames_per_s: Annotated[float, Range(0.001, 1e9), "frames per second, of all senders together"]
    data_bytes: Annotated[int, Range(0, 2048), "bytes of data in each frame"] = 8
    tokens: Annotated[
        Annotated[int, Range(0, 255)] | None, "tokens in each frame; as many as in the pattern by default"
    ] = None

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < len(self.pattern):
            raise ValueError(f"tokens: the pattern alone has {len(self.pattern)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSpec(Node):
    """A bridge, which carries frames between buses and media, with policies for each side."""

    GATEWAYS = "on"
    on: Annotated[
        tuple[GatewayName, ...],
        Length(1, 64),
        Single(),
        "the gateway, or several, best first: the others are standbys",
    ]
    join: Annotated[
        tuple[ByGateway[Side], ...], Length(2, 64), "what it joins; each value may be given by gateway"
    ]
    pattern: Annotated[Names, "only frames that start with this cross"] = ()
    group: Annotated[
        Name | None, "bridges of one group stand in for each other, as do the gateways of one bridge"
    ] = None
    rates: Annotated[tuple[Rate, ...], "promised traffic; `check` compares it with the media"] = ()

    def __post_init__(self) -> None:
        if len(set(self.on)) != len(self.on):
            raise ValueError("the same gateway is listed twice in on")

    def at(self, gateway: str) -> tuple[Side, ...]:
        """Return the sides as they are on one of the bridge's gateways."""
        return tuple(side.at(gateway) for side in self.join)


Spec = BrokerSpec | BusSpec | BridgeSpec | DeviceSpec
S = TypeVar("S", bound=Spec)


def gateways_of(spec: Spec) -> tuple[str, ...]:
    """Return the gateways that run a part, the best first."""
    return spec.on if isinstance(spec, BridgeSpec) else (spec.on,)


class Candidate(NamedTuple):
    """A gateway's copy of a bridge. Of those that stand in for each other, one forwards at a time."""

    bridge: str
    gateway: str


def candidates_of(topology: "Topology", bridge: str) -> tuple[Candidate, ...]:
    """Return the candidates that stand in for each other with a bridge, the best first.

    They are its gateways; in a group, the gateways of all its bridges, in the order of the file.
    """
    group, bridges = topology.bridges[bridge].group, topology.bridges
    members = [bridge] if group is None else [name for name, spec in bridges.items() if spec.group == group]
    return tuple(Candidate(name, gateway) for name in members for gateway in bridges[name].on)


def running(specs: Mapping[str, S], gateway: str) -> dict[str, S]:
    """Return the parts among `specs` that a gateway runs."""
    return {name: spec for name, spec in specs.items() if gateway in gateways_of(spec)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesSpec(Node):
    """Names that programs use. Tokens are shown by them, and by the names in the patterns of this file."""

    SHORT = "list"
    list: Annotated[tuple[Names, ...], Length(0, 4096), "names; also patterns, for the names in them"] = ()
    file: Annotated[
        Path | None, "a file with one name or pattern a line, relative to the directory of this file"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology(Node):
    """The whole system, of which each gateway runs its part."""

    name: Annotated[Name, "name of the system"]
    gateways: Annotated[Mapping[Name, Gateway], Length(1, 1024), "the machines"]
    brokers: Annotated[Mapping[Name, BrokerSpec], "they choose the active bridge"] = field(
        default_factory=dict
    )
    buses: Annotated[Mapping[Name, BusSpec], "buses, by name"] = field(default_factory=dict)
    bridges: Annotated[Mapping[Name, BridgeSpec], "bridges, by name"] = field(default_factory=dict)
    devices: Annotated[
        Mapping[Name, Annotated[DeviceSpec, KindOf("a device", DEVICES)]], "devices, by name"
    ] = field(default_factory=dict)
    keys: Annotated[
        tuple[Path, ...],
        Length(0, 16),
        Single(),
        "files of keys for trunks and brokers (`buscoupler key new`): the first signs, all verify",
    ] = ()
    names: Annotated[NamesSpec, "names of tokens, for all that prints them"] = NamesSpec()
    events: Annotated[
        tuple[BusName, ...],
        Length(0, 64),
        Single(),
        "where gateways publish their events: each on those of these buses that it runs; by default on none",
    ] = ()
    logs: Annotated[
        tuple[BusName, ...],
        Length(0, 64),
        Single(),
        "where gateways publish warnings and worse of their log, in the same way (docs/log.md)",
    ] = ()

    @property
    def sections(self) -> dict[str, Mapping[str, Spec]]:
        """Everything that gateways run, by the key of its section in the file."""
        return {
            "brokers": self.brokers,
            "buses": self.buses,
            "bridges": self.bridges,
            "devices": self.devices,
        }
