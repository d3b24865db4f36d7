"""Search for resources that two parts want but only one can have: a port, a serial device, a CAN node id."""

from collections import defaultdict
from collections.abc import Iterator
from os.path import normpath
from typing import NamedTuple

from bus.schema import Where
from bus.urls import HOSTED, overlap, plain_host, split_url
from topologies.findings import Finding, error
from topologies.model import Topology
from topologies.model.status import tcp_url
from topologies.wiring.reach import machine
from topologies.wiring.segments import Wiring


class Use(NamedTuple):
    """The use of resource `what` by `owner` on a gateway; `host` narrows a port.

    `place` is what has only one of it: a machine, a process or a wire.
    """

    place: str
    gateway: str
    what: str
    owner: str
    where: Where
    host: str = ""


def find_conflicts(wiring: Wiring) -> list[Finding]:
    """Return an error for each pair of uses that conflict, at the later of the two."""
    taken: dict[tuple[str, str], list[Use]] = defaultdict(list)
    findings = []
    for use in sorted(uses(wiring), key=lambda use: use.where):
        before = taken[use.place, use.what]
        if first := next((one for one in before if overlap(one.host, use.host)), None):
            text = f"{use.what} is taken by {first.owner} already (line {first.where.line})"
            findings.append(error(use.where, text + _one_machine(wiring.topology, first, use)))
        before.append(use)
    return findings


def _one_machine(topology: Topology, first: Use, second: Use) -> str:
    """Return why two gateways want one thing, and what to do; "" if it is one gateway, or one wire."""
    if first.gateway == second.gateway or first.place != machine(topology, first.gateway):
        return ""
    return f": by their addresses {first.gateway} and {second.gateway} are one machine, so give each its own"


def uses(wiring: Wiring) -> list[Use]:
    """Return all uses of resources that only one part can have."""
    return [*_listeners(wiring.topology), *_taken(wiring)]


def _listeners(topology: Topology) -> Iterator[Use]:
    for name, gateway in topology.gateways.items():
        page = gateway.status
        if page.serve and page.listen is not None:  # the default goes over to a free port
            yield from _address(
                topology, name, tcp_url(page.listen), f"the status page of {name}", page.where
            )
    for name, bus in topology.buses.items():
        for listen in bus.listen:
            yield from _address(topology, bus.on, listen.url, f"bus {name}", listen.where)
    for name, broker in topology.brokers.items():
        for address in broker.listen:
            yield from _address(topology, broker.on, address.url, f"broker {name}", address.where)
    for name, device in topology.devices.items():
        for listener in device.listens():
            yield from _address(topology, device.on, listener.url, f"device {name}", listener.where)


def _address(topology: Topology, gateway: str, text: str, owner: str, where: Where) -> Iterator[Use]:
    url, place = split_url(text), machine(topology, gateway)
    if url.scheme in HOSTED and url.port:
        yield Use(place, gateway, f"TCP port {url.port}", owner, where, url.host)
    if url.scheme == "ipc":
        yield Use(place, gateway, f"socket {normpath(url.path)}", owner, where)
    if url.scheme == "inproc":
        yield Use(f"process of {gateway}", gateway, text, owner, where)


def _taken(wiring: Wiring) -> Iterator[Use]:
    """Yield the resources that devices and media use exclusively."""
    topology = wiring.topology
    for name, device in topology.devices.items():
        for what in device.takes():
            yield Use(machine(topology, device.on), device.on, what, f"device {name}", device.where)
    for joint in wiring.joints:
        medium, bridge = joint.side.medium, f"bridge {joint.bridge}"
        if medium is None:
            continue
        if medium.listens:
            yield from _address(topology, joint.gateway, medium.listens, bridge, medium.where)
        node = topology.gateways[joint.gateway].node if joint.side.speaks is None else None
        for what, host, on_wire in medium.takes(node):
            place = joint.wire if on_wire else machine(topology, joint.gateway)
            owner = f"{bridge} on {joint.gateway}" if on_wire else bridge
            yield Use(place, joint.gateway, what, owner, medium.where, plain_host(host))
