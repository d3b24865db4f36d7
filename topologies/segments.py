"""Finds the bus that an address leads to, and the sides of bridges that share one wire."""

from collections.abc import Iterator
from typing import NamedTuple

from bus.schema import Where
from bus.urls import HOSTED, Url, is_loopback, is_wildcard, overlap, split_url, with_host
from topologies.model import BridgeSpec, BusSpec, DeviceSpec, Listen, Side, Topology


class Joint(NamedTuple):
    """One side of one bridge on one of its gateways."""

    bridge: str
    spec: BridgeSpec
    side: Side
    gateway: str


def joints(topology: Topology) -> Iterator[Joint]:
    """Every side of every bridge, on every gateway that may run it."""
    for name, spec in topology.bridges.items():
        for side in spec.join:
            for gateway in spec.on:
                yield Joint(name, spec, side, gateway)


def machine(topology: Topology, gateway: str) -> str:
    """A name that tells machines apart: gateways with loopback addresses share one."""
    address = topology.gateways[gateway].address
    return "this machine" if is_loopback(address) else address


def is_trunk(topology: Topology, side: Side) -> bool:
    """Return whether envelopes are kept on a side: as it says, or else as its bus has a trunk or not."""
    if side.trunk is None and side.bus is not None:
        return has_trunk(topology.buses[side.bus])
    return bool(side.trunk)


def has_trunk(bus: BusSpec) -> bool:
    """Return whether other appliances reach a bus, or it them, by an address that keeps envelopes."""
    return any(end.trunk for end in bus.listen) or any(end.trunk for end in bus.dial)


def address_of(topology: Topology, bus: str, gateway: str, trunk: bool) -> tuple[str, Listen] | None:
    """Address that `gateway` dials to reach `bus`, and its options: the first of that kind, or None."""
    for listen in topology.buses[bus].listen:
        if listen.trunk == trunk and (address := _from(topology, listen, topology.buses[bus].on, gateway)):
            return address, listen
    return None


def _from(topology: Topology, listen: Listen, owner: str, gateway: str) -> str | None:
    url = split_url(listen.url)
    near = machine(topology, owner) == machine(topology, gateway)
    if url.scheme not in HOSTED:
        return listen.url if near and url.scheme == "ipc" else None
    if url.port == 0 or (is_loopback(url.host) and not near):
        return None
    return _for_all(topology, listen.url, owner)


def broker_urls(topology: Topology) -> list[str]:
    """Return the address of each broker for all gateways and clients, in the order of the file."""
    return [_for_all(topology, spec.listen[0].url, spec.on) for spec in topology.brokers.values()]


def _for_all(topology: Topology, listening: str, owner: str) -> str:
    url = split_url(listening)
    return with_host(url, topology.gateways[owner].address) if is_wildcard(url.host) else listening


def bus_at(topology: Topology, text: str, gateway: str) -> str | None:
    """The bus of this file that listens where `gateway` would dial, if there is one."""
    url = split_url(text)
    for name, bus in topology.buses.items():
        if any(_leads(topology, url, gateway, split_url(listen.url), bus.on) for listen in bus.listen):
            return name
    return None


def _leads(topology: Topology, dialled: Url, gateway: str, listening: Url, owner: str) -> bool:
    near = machine(topology, gateway) == machine(topology, owner)
    if dialled.scheme != listening.scheme:
        return False
    if dialled.scheme not in HOSTED:
        return near and dialled.path == listening.path and (dialled.scheme == "ipc" or gateway == owner)
    if dialled.port != listening.port or dialled.path.rstrip("/") != listening.path.rstrip("/"):
        return False
    if is_loopback(dialled.host):
        return near and overlap(dialled.host, listening.host)
    address = topology.gateways[owner].address
    return dialled.host in (address, listening.host) and (
        is_wildcard(listening.host) or listening.host in (dialled.host, address)
    )


class Segments:
    """Names the wire behind each side, so that two sides on one wire get the same name."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._same: dict[str, str] = {}
        for joint in joints(topology):
            # Stand-ins for each other are on the same wire, whatever their machines call it.
            self._merge(self._own(joint), self._own(joint._replace(gateway=joint.spec.on[0])))

    def of(self, joint: Joint) -> str:
        return self._root(self._own(joint))

    def _root(self, name: str) -> str:
        while name in self._same:
            name = self._same[name]
        return name

    def _merge(self, one: str, other: str) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self._same[one] = other

    def _own(self, joint: Joint) -> str:
        side, medium = joint.side, joint.side.medium
        if side.segment is not None:
            return f"segment {side.segment}"
        if medium is None:
            return f"bus {side.bus}"
        bus = bus_at(self._topology, medium.dials, joint.gateway) if medium.dials else None
        return f"bus {bus}" if bus else medium.wire(machine(self._topology, joint.gateway))


class Edge(NamedTuple):
    """A link between two things by name: a bus and what it dials, or a bridge and a wire that it joins."""

    one: str
    other: str
    trunk: bool
    where: Where
    joint: Joint | None = None


def edges_of(topology: Topology) -> Iterator[Edge]:
    """Yield all links; those of a bridge once, for its best gateway: its stand-ins are on the same wires."""
    for name, bus in topology.buses.items():
        for dial in bus.dial:
            target = bus_at(topology, dial.url, bus.on)
            yield Edge(
                f"bus {name}", f"bus {target}" if target else f"url {dial.url}", dial.trunk, dial.where
            )
    segments = Segments(topology)
    for joint in joints(topology):
        if joint.gateway == joint.spec.on[0]:
            trunk = is_trunk(topology, joint.side)
            yield Edge(f"bridge {joint.bridge}", segments.of(joint), trunk, joint.side.where, joint)


def tapped(topology: Topology, device: DeviceSpec) -> list[str]:
    """The parts that a tap records: `bus NAME`, `bridge NAME`."""
    return [f"bus {name}" if name in topology.buses else f"bridge {name}" for name in device.tap]
