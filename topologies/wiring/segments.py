"""Search for the sides of bridges that share a wire, and for the links between buses, bridges and wires."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bus.schema import Where
from bus.urls import is_loopback, split_url
from devices.device import DeviceSpec
from topologies.model import BridgeSpec, Candidate, Side, Topology, candidates_of
from topologies.names import ListedNames
from topologies.wiring.reach import broker_at, brokers_of, bus_at, has_trunk, machine, trunks_of


class Joint(NamedTuple):
    """One side of one bridge on one of its gateways.

    `number`: the side's place in `join`. `trunk`: whether envelopes are kept there. `wire`: the name of the
    wire, the same for all sides on it.
    """

    bridge: str
    spec: BridgeSpec
    number: int
    side: Side
    gateway: str
    trunk: bool
    wire: str

    @property
    def candidate(self) -> Candidate:
        return Candidate(self.bridge, self.gateway)


class Edge(NamedTuple):
    """A link between two parts by name: a bus and an address that it dials, or a bridge and a wire.

    `joint` is the side of a bridge there, and `candidate` the gateway's copy of that bridge.
    """

    one: str
    other: str
    trunk: bool
    where: Where
    joint: Joint | None = None
    candidate: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Wiring:
    """The map of a topology: which sides are on one wire, and what is linked with what. `wired` draws it.

    `candidates` has for each bridge those that stand in for each other with it, the best first. `joints` are
    all sides of all bridges on all gateways that may run them, and `edges` all links, those of standbys too.
    `listed` are the names that the topology lists.
    """

    topology: Topology
    candidates: Mapping[str, tuple[Candidate, ...]]
    joints: tuple[Joint, ...]
    edges: tuple[Edge, ...]
    listed: ListedNames

    @property
    def groups(self) -> list[tuple[Candidate, ...]]:
        """The groups of candidates that stand in for each other."""
        return list(dict.fromkeys(self.candidates.values()))

    @property
    def best(self) -> set[Candidate]:
        """The candidates that forward if all goes well: one of each group, or all that do so in parallel."""
        bridges = self.topology.bridges
        groups = self.candidates.items()
        return {one for name, group in groups for one in (group if bridges[name].is_parallel else group[:1])}

    def leases(self, gateway: str) -> bool:
        """Return whether a gateway claims leases, or grants them."""
        bridges = self.topology.bridges
        claims = (
            len(group) > 1 and not bridges[name].is_parallel and any(one.gateway == gateway for one in group)
            for name, group in self.candidates.items()
        )
        return any(claims) or any(broker.on == gateway for broker in self.topology.brokers.values())

    def links(self, forwarding: Collection[Candidate]) -> list[Edge]:
        """Return the links between buses, and the links of the candidates that are `forwarding`."""
        return [edge for edge in self.edges if edge.candidate is None or edge.candidate in forwarding]


def wired(topology: Topology) -> Wiring:
    """Draw the map of a topology. Do so once, and hand it on."""
    candidates = _candidates(topology)
    joints = tuple(_joints(topology, candidates))
    edges = (*_between_buses(topology), *map(_edge, joints))
    return Wiring(topology, candidates, joints, edges, ListedNames(topology.names))


def _candidates(topology: Topology) -> dict[str, tuple[Candidate, ...]]:
    """Return `candidates_of` each bridge, each group of them once."""
    found: dict[str, tuple[Candidate, ...]] = {}
    for name in topology.bridges:
        if name not in found:
            group = candidates_of(topology, name)
            found |= dict.fromkeys((one.bridge for one in group), group)
    return found


def _joints(topology: Topology, candidates: Mapping[str, tuple[Candidate, ...]]) -> Iterator[Joint]:
    """Yield every side of every bridge on every gateway that may run it."""
    same: dict[str, str] = {}
    found = [
        Joint(
            name, spec, number, side, gateway, is_trunk(topology, side), _wire(topology, side, gateway, same)
        )
        for name, spec in topology.bridges.items()
        for gateway in spec.on
        for number, side in enumerate(spec.at(gateway))
    ]
    places = {(joint.candidate, joint.number): joint for joint in found}
    for joint in found:
        best = places.get((candidates[joint.bridge][0], joint.number), joint)
        if _may_be_one(joint, best):
            _unite(same, joint.wire, best.wire)
    for joint in found:
        wire = _root(same, joint.wire)
        yield joint if wire == joint.wire else joint._replace(wire=wire)


def _between_buses(topology: Topology) -> Iterator[Edge]:
    """Yield the links by which buses dial others."""
    for name, bus in topology.buses.items():
        for dial in bus.dial:
            target = bus_at(topology, dial.url, bus.on)
            end = f"bus {target}" if target else f"url {dial.url}"
            yield Edge(f"bus {name}", end, dial.trunk, dial.where)
        for other in trunks_of(topology, name):
            yield Edge(f"bus {name}", f"bus {other}", True, bus.where)


def _edge(joint: Joint) -> Edge:
    """Return the link between a bridge and the wire of one of its sides."""
    return Edge(f"bridge {joint.bridge}", joint.wire, joint.trunk, joint.side.where, joint, joint.candidate)


def _wire(topology: Topology, side: Side, gateway: str, same: dict[str, str]) -> str:
    """Return the first name of the wire of a side. Note in `same` that its other names mean the same wire."""
    first, *others = wires_of(topology, side, gateway)
    for other in others:
        _unite(same, other, first)
    return first


def _may_be_one(joint: Joint, best: Joint) -> bool:
    """Return whether two candidates are on one wire there, although its names on their machines differ.

    They are, unless the file names two segments, or a bus.
    """
    kinds = {wire.partition(" ")[0] for wire in (joint.wire, best.wire)}
    return "bus" not in kinds and kinds != {"segment"}


def _unite(same: dict[str, str], name: str, other: str) -> None:
    """Note that two names are of one wire."""
    if (one := _root(same, name)) != (root := _root(same, other)):
        same[one] = root


def _root(same: dict[str, str], name: str) -> str:
    while name in same:
        name = same[name]
    return name


def wires_of(topology: Topology, side: Side, gateway: str) -> tuple[str, ...]:
    """Return the names of the wire that a side joins, as seen from `gateway`.

    A side that dials brokers has one for each of them, because it joins the clients of all.
    """
    medium, named = side.medium, (f"segment {side.segment}",) if side.segment is not None else ()
    brokers = () if medium is None else brokers_of(topology, medium)
    if brokers or named:
        return *named, *(_network(topology, broker, gateway) for broker in brokers)
    if medium is None:
        return (f"bus {side.bus}",)
    bus = bus_at(topology, medium.dials, gateway) if medium.dials else None
    return (f"bus {bus}" if bus else medium.wire(machine(topology, gateway)),)


def _network(topology: Topology, broker: str, gateway: str) -> str:
    """Return the name of a broker's network as seen from `gateway`: one for all brokers of the file.

    That is named after the first one: it keeps its name in captures when a broker is added.
    """
    if broker in topology.brokers or broker_at(topology, broker, gateway):
        return f"tmq {next(iter(topology.brokers))}"
    url = split_url(broker)
    host = machine(topology, gateway) if is_loopback(url.host) else url.host
    return f"tmq {host}:{url.port}"


def is_trunk(topology: Topology, side: Side) -> bool:
    """Return whether envelopes are kept on a side: its `trunk`; by default, whether its bus has a trunk."""
    if side.trunk is None and side.bus is not None:
        return has_trunk(topology.buses[side.bus])
    return bool(side.trunk)


def joined(topology: Topology, device: DeviceSpec) -> list[str]:
    """Return the parts that a device joins, as `bus NAME` or `bridge NAME`."""
    return [f"bus {name}" if name in topology.buses else f"bridge {name}" for name in device.joins]
