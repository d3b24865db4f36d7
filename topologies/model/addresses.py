"""The records of addresses: those at which buses and brokers listen, and those that buses dial."""

from dataclasses import dataclass
from typing import Annotated

from bridges.durable.settings import Durable, check_durable
from bus.key_types import BrokerListenUrl, Bytes, DialUrl, ListenUrl, Milliseconds, Origin, Path
from bus.schema import Length, Owned, Record, Single
from bus.transports.options import (
    Tls,
    check_age,
    check_keys,
    check_last_values,
    check_limits,
    check_origins,
    check_own_tls,
    check_tls_of_all,
)
from bus.transports.peers import Peer, check_peers
from bus.urls import BEACON, split_url

OwnKeys = Annotated[
    Annotated[tuple[Path, ...], Length(0, 16), Single()] | None,
    "files of keys for this trunk; those of the file by default, `[]` for none (docs/wire/signed.md)",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(Record):
    """An address at which a bus listens or that it dials."""

    SHORT = "url"
    url: str
    trunk: Annotated[bool, "for other appliances: envelopes are kept here"] = False
    queue_bytes: Annotated[Bytes | None, "bound of the queue to each peer; the bus's by default"] = None
    message_bytes: Annotated[
        Bytes | None, "longest message accepted, without its envelope; the bus's by default"
    ] = None
    tls: Annotated[Owned[Tls] | None, "certificates, for `tls+tcp://` and `wss://`"] = None
    keys: OwnKeys = None
    age_ms: Annotated[
        Milliseconds | None,
        "what waits longer on this trunk is dropped, and a peer that takes nothing for so long is closed; by "
        "default 4000 where trunks form a ring, else never (docs/wire/envelope.md)",
    ] = None

    durable: Annotated[
        Durable | None, "keep in a journal what the other end of this trunk misses (docs/durable.md)"
    ] = None

    def __post_init__(self) -> None:
        check_age(self.url, self.trunk, self.age_ms)
        check_durable(self.url, self.trunk, self.durable)
        check_limits(self.url, self.queue_bytes, self.message_bytes)
        check_keys(self.url, self.trunk, self.keys)

    def tls_of(self, gateway: str) -> Tls | None:
        """Return the certificates with which a gateway listens here, or dials."""
        return None if self.tls is None else self.tls.of(gateway)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen(Address):
    """An address at which a bus accepts peers."""

    url: Annotated[ListenUrl, "`tcp://`, `ipc://`, `ws://`, `wss://`, `tls+tcp://` or `inproc://`"]
    tls: Annotated[
        Owned[Tls] | None,
        "certificates, for `tls+tcp://` and `wss://`; by gateway also for those that dial here",
    ] = None
    beacon: Annotated[bool, "announce it once a second on the LAN (docs/dbp.md)"] = False
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
        check_tls_of_all(self.url, self.tls, listens=True)
        check_origins(self.url, self.origins)
        if self.tls is None or self.tls.every is not None:
            check_peers(self.url, None if self.tls is None else self.tls.every, self.peers or ())
        self._check_durable()

    def check_at(self, gateway: str) -> None:
        """Raise ValueError if the gateway that listens here cannot do so with the certificates of its own."""
        check_own_tls(self.url, self.tls, gateway)
        if self.tls is not None and self.tls.own:
            check_peers(self.url, self.tls.of(gateway), self.peers or ())

    def _check_durable(self) -> None:
        if self.durable and any(peer.send is not None or peer.hear is not None for peer in self.peers or ()):
            raise ValueError("durable with send or hear of peers: give durable a pattern instead")


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
        check_tls_of_all(self.url, self.tls, listens=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress(Record):
    """An address at which a broker listens."""

    SHORT = "url"
    url: Annotated[
        BrokerListenUrl, "`tcp://HOST:PORT` or `tls+tcp://HOST:PORT`; HOST is an IPv4 address or a name"
    ]
    beacon: Annotated[bool, "announce it once a second on the LAN (docs/dbp.md)"] = False
    tls: Annotated[
        Owned[Tls] | None,
        "certificates, for `tls+tcp://`; gateways dial it with the same paths, or each with its own",
    ] = None

    def __post_init__(self) -> None:
        check_tls_of_all(self.url, self.tls, listens=True)

    def tls_of(self, gateway: str) -> Tls | None:
        """Return the certificates with which a gateway listens here, or dials."""
        return None if self.tls is None else self.tls.of(gateway)
