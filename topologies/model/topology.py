"""The record of a whole topology file, and of its gateways; and which parts a gateway runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, TypeVar

from bus.errors import TopologyError
from bus.key_types import BusName, CanNode, Name, Names, Path, PeerHost
from bus.machine.busy_poll import DEFAULT_US, MOST_US
from bus.schema import KindOf, Length, Range, Record, Single
from bus.transports.peers import Network
from devices import DEVICES
from devices.device import DeviceSpec
from topologies.model.alarms import OUTLETS, AlarmSpec, OutletSpec
from topologies.model.bridges import BridgeSpec
from topologies.model.buses import BrokerSpec, BusSpec
from topologies.model.status import PLAIN, StatusSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Record):
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
    busy_poll_us: Annotated[
        Annotated[int, Range(0, MOST_US)] | None,
        "how long it looks for the next message before it sleeps, where messages follow each other that "
        f"closely; 0 never; by default {DEFAULT_US}, and 0 with a single processor (docs/tuning.md)",
    ] = None
    keep_connections_of: Annotated[
        tuple[Network, ...],
        Length(0, 64),
        Single(),
        "networks whose connections never make room for those of other hosts",
    ] = ()
    status: Annotated[StatusSpec, "its status page and metrics (docs/status.md)"] = PLAIN


Spec = BrokerSpec | BusSpec | BridgeSpec | DeviceSpec
S = TypeVar("S", bound=Spec)


def gateways_of(spec: Spec) -> tuple[str, ...]:
    """Return the gateways that run a part, the best first."""
    return spec.on if isinstance(spec, BridgeSpec) else (spec.on,)


class Candidate(NamedTuple):
    """A gateway's copy of a bridge. Of candidates that stand in for each other, one forwards at a time."""

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
class NamesSpec(Record):
    """Names that programs use. Tokens are shown by them, and by the names in the patterns of this file."""

    SHORT = "list"
    list: Annotated[tuple[Names, ...], Length(0, 4096), "names; also patterns, for the names in them"] = ()
    file: Annotated[
        Path | None, "a file with one name or pattern a line, relative to the directory of this file"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology(Record):
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
    alarms: Annotated[Mapping[Name, AlarmSpec], Length(0, 256), "alarms, by name (docs/alarms.md)"] = field(
        default_factory=dict
    )
    outlets: Annotated[
        Mapping[Name, Annotated[OutletSpec, KindOf("an outlet", OUTLETS)]],
        Length(0, 64),
        "what tells people of alarms, by name",
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
    digest: str = field(default="", compare=False, repr=False)
    """The SHA-256 of the file in hexadecimal digits; "" if it was not read from a file."""

    @property
    def sections(self) -> dict[str, Mapping[str, Spec]]:
        """Everything that gateways run, by the key of its section in the file."""
        return {
            "brokers": self.brokers,
            "buses": self.buses,
            "bridges": self.bridges,
            "devices": self.devices,
        }


def gateway_named(topology: Topology, host: str) -> str | None:
    """Return the gateway with the name of a host, in full or without its domain; None if there is none."""
    names = (host, host.partition(".")[0])
    return next((name for name in names if name in topology.gateways), None)


def gateway_here(topology: Topology, host: str) -> str:
    """Return the gateway named like `host`, or the only one. Raises `TopologyError`, with all names."""
    found = gateway_named(topology, host)
    if found is None and len(topology.gateways) > 1:
        names = ", ".join(topology.gateways)
        text = f"the topology has several gateways, and none is named like this host, {host}"
        raise TopologyError(f"{text}: choose one with --gateway: {names}")
    return found or next(iter(topology.gateways))
