"""A topology as a picture: its parts and lines. `layout` gives them places. Pure.

The ids are stable over changes of other parts, so a page or `show --live` marks them with what is going on.
"""

from collections.abc import Iterator

from topologies.model import Topology, running
from topologies.picture.layout import WIDE, Box, Drawing, Edge, PictureNode, placed
from topologies.picture.show import place_of, side_label
from topologies.wiring.durable import durable_lines
from topologies.wiring.ids import bridge_id, link_between, link_id
from topologies.wiring.reach import brokers_of
from topologies.wiring.segments import Joint, Wiring, joined, wired


def draw(topology: Topology) -> Drawing:
    """Return the picture of a topology, for a wide page."""
    wiring = wired(topology)
    boxes = tuple(Box(name, gateway.address) for name, gateway in topology.gateways.items())
    parts = {node.id: node for name in topology.gateways for node in _parts(topology, name)}
    edges = tuple({edge.id: edge for edge in _edges(wiring)}.values())
    outside = _outside(
        wiring, [edge.other for edge in edges if edge.one in parts and edge.other not in parts]
    )
    nodes = parts | {node.id: node for node in outside}
    known = tuple(edge for edge in edges if edge.one in nodes)
    return placed(Drawing(topology.name, 0, 0, boxes, tuple(nodes.values()), known), WIDE)


def _parts(topology: Topology, gateway: str) -> list[PictureNode]:
    """Return the parts of a gateway."""
    buses = [PictureNode(f"bus {name}", "bus", name, gateway) for name in running(topology.buses, gateway)]
    brokers = [
        PictureNode(f"broker {name}", "broker", name, gateway) for name in running(topology.brokers, gateway)
    ]
    bridges = [
        PictureNode(bridge_id(name, gateway), "bridge", name, gateway, place_of(topology, name, gateway))
        for name in running(topology.bridges, gateway)
    ]
    devices = [
        PictureNode(f"device {name}", "device", name, gateway, spec.key)
        for name, spec in running(topology.devices, gateway).items()
    ]
    return buses + brokers + bridges + devices


def _edges(wiring: Wiring) -> Iterator[Edge]:
    topology, best = wiring.topology, wiring.best
    kept = durable_lines(topology)
    for edge in wiring.links(()):
        one, other = edge.one, edge.other
        is_durable = edge.trunk and tuple(sorted((one, other))) in kept
        yield Edge(link_between(one, other), one, other, edge.trunk, durable=is_durable)
    for joint in wiring.joints:
        node = bridge_id(joint.bridge, joint.gateway)
        yield Edge(f"{node}/{joint.number}", node, joint.wire, joint.trunk, joint.candidate not in best)
        for broker in _networked(topology, joint):
            yield Edge(link_id(f"broker {broker}", joint.wire), f"broker {broker}", joint.wire)
    for name, device in topology.devices.items():
        for part in joined(topology, device):
            end = bridge_id(part.removeprefix("bridge "), device.on) if part.startswith("bridge ") else part
            yield Edge(link_id(f"device {name}", end), f"device {name}", end)


def _networked(topology: Topology, joint: Joint) -> list[str]:
    """Return the brokers of the file whose clients a side joins."""
    medium = joint.side.medium
    dialled = () if medium is None else brokers_of(topology, medium)
    return [broker for broker in dialled if broker in topology.brokers]


def _outside(wiring: Wiring, names: list[str]) -> Iterator[PictureNode]:
    """Yield the wires and foreign addresses of these names, each once."""
    labels = {joint.wire: (joint.side.kind, side_label(joint.side)) for joint in reversed(wiring.joints)}
    for wire in dict.fromkeys(names):
        kind, label = labels.get(wire, ("address", wire.removeprefix("url ")))
        yield PictureNode(wire, "wire", kind, detail=label.removeprefix(kind).strip())
