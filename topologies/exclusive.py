"""What can be had once only: a port on a machine, a serial device, a node id on a CAN bus."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from os.path import normpath
from typing import NamedTuple

from bus.schema import Where
from bus.transports.urls import HOSTED, overlap, split_url
from topologies.findings import Finding, error
from topologies.model import Can, I2c, Link, Tcp, Topology, Uart
from topologies.segments import Joint, Segments, joints, machine


class Claim(NamedTuple):
    """Who takes `what` on `machine`; `host` narrows a port, `path` tells WebSockets on one port apart."""

    machine: str
    what: str
    owner: str
    where: Where
    host: str = ""
    path: str | None = None


def find_conflicts(topology: Topology) -> list[Finding]:
    """An error for each pair that wants the same thing, at the later of the two."""
    groups: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    claims = (*_listeners(topology), *_devices(topology), *_can_nodes(topology))
    for claim in sorted(claims, key=lambda claim: claim.where):
        groups[claim.machine, claim.what].append(claim)
    return [
        error(later.where, f"{later.what} is taken by {first.owner} already (line {first.where.line})")
        for group in groups.values()
        for first, later in _pairs(group)
    ]


def _pairs(claims: list[Claim]) -> Iterator[tuple[Claim, Claim]]:
    """For each claim the first one that it meets, so that n of them make n - 1 findings."""
    met = set()
    for (_, first), (j, later) in combinations(enumerate(claims), 2):
        if j not in met and overlap(first.host, later.host) and not _share_port(first, later):
            met.add(j)
            yield first, later


def _share_port(one: Claim, other: Claim) -> bool:
    """Whether two WebSocket listeners differ by their path alone: NNG serves both on one port."""
    return (
        one.path is not None and other.path is not None and one.path != other.path and one.host == other.host
    )


def _listeners(topology: Topology) -> Iterator[Claim]:
    owned = [(f"bus {name}", bus.on, bus.listen) for name, bus in topology.buses.items()]
    owned += [(f"broker {name}", broker.on, broker.listen) for name, broker in topology.brokers.items()]
    for owner, gateway, listens in owned:
        for listen in listens:
            yield from _address(topology, gateway, listen.url, owner, listen.where)
    for joint in joints(topology):
        yield from _side_address(topology, joint)


def _side_address(topology: Topology, joint: Joint) -> Iterator[Claim]:
    medium, owner = joint.side.medium, f"bridge {joint.bridge}"
    if isinstance(medium, Link) and medium.mode == "listen":
        yield from _address(topology, joint.gateway, medium.address, owner, medium.where)
    if isinstance(medium, Tcp) and medium.mode == "listen":
        place = machine(topology, joint.gateway)
        yield Claim(place, f"TCP port {medium.port}", owner, medium.where, medium.host)


def _address(topology: Topology, gateway: str, text: str, owner: str, where: Where) -> Iterator[Claim]:
    url, place = split_url(text), machine(topology, gateway)
    if url.scheme in HOSTED and url.port:
        path = url.path.rstrip("/") if url.scheme.startswith("ws") else None
        yield Claim(place, f"TCP port {url.port}", owner, where, url.host, path)
    if url.scheme == "ipc":
        yield Claim(place, f"socket {normpath(url.path)}", owner, where)
    if url.scheme == "inproc":
        yield Claim(f"process of {gateway}", text, owner, where)


def _devices(topology: Topology) -> Iterator[Claim]:
    for joint in joints(topology):
        medium, owner = joint.side.medium, f"bridge {joint.bridge}"
        place = machine(topology, joint.gateway)
        if isinstance(medium, Uart):
            yield Claim(place, f"serial port {normpath(medium.port)}", owner, medium.where)
        if isinstance(medium, I2c):
            for target in medium.targets:
                yield Claim(place, f"I2C bus {medium.bus}, target {target:#04x},", owner, medium.where)


def can_node(topology: Topology, joint: Joint) -> int | None:
    """The Cyphal node id of a CAN side: its own, or else its gateway's; None on other media."""
    medium = joint.side.medium
    return (medium.node or topology.gateways[joint.gateway].node) if isinstance(medium, Can) else None


def _can_nodes(topology: Topology) -> Iterator[Claim]:
    segments = Segments(topology)
    for joint in joints(topology):
        medium, node = joint.side.medium, can_node(topology, joint)
        if isinstance(medium, Can) and node is not None:
            # The identifier on the wire holds node and subject: only both together collide.
            what = f"CAN node id {node} (subject {medium.subject:#x})"
            yield Claim(segments.of(joint), what, f"bridge {joint.bridge} on {joint.gateway}", medium.where)
