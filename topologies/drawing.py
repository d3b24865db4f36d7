"""The layout of a topology as a picture: nodes, edges and boxes with places, in pixels. Pure.

Each gateway is a box, below the one before. Buses and brokers stand on the left in it, bridges and devices
beside them; wires and addresses outside of the file stand to the right of all boxes. The ids are stable over
changes of other parts, so a page or `show --live` marks them with what is going on.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from topologies.model import Candidate, Topology, candidates_of, running
from topologies.reach import brokers_of, dials_of, listen_at
from topologies.segments import Joint, edges_of, joined, joints
from topologies.show import side_label

NODE_WIDTH, NODE_HEIGHT = 152, 56
_ROW, _GAP, _PAD, _HEAD, _MARGIN = 76, 104, 14, 30, 52
_COLUMNS = (
    _MARGIN + _PAD,
    _MARGIN + _PAD + NODE_WIDTH + _GAP,
    _MARGIN + 3 * _PAD + 2 * NODE_WIDTH + 2 * _GAP,
)
_BOX_WIDTH = 2 * _PAD + 2 * NODE_WIDTH + _GAP
WIDTH = _COLUMNS[2] + NODE_WIDTH + _PAD


T = TypeVar("T")


class Node(NamedTuple):
    """A part or a wire. `gateway` is "" for what is outside of all; `x` and `y` are its upper left corner."""

    id: str
    kind: str
    name: str
    gateway: str = ""
    detail: str = ""
    x: float = 0
    y: float = 0


class Edge(NamedTuple):
    """A line between two nodes, by their ids. `standby`: only used when this gateway takes over.

    `path` is a cubic curve: its two ends with their two handles between them, each as x and y.
    """

    id: str
    one: str
    other: str
    trunk: bool = False
    standby: bool = False
    path: tuple[float, ...] = ()


class Box(NamedTuple):
    """A gateway."""

    gateway: str
    address: str
    x: float
    y: float
    height: float
    width: float = _BOX_WIDTH


class Drawing(NamedTuple):
    """A picture of a whole topology."""

    name: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def as_record(self) -> dict[str, Any]:
        """Return it as a status document has it."""
        return {
            "width": self.width,
            "height": self.height,
            "boxes": [box._asdict() for box in self.boxes],
            "nodes": [node._asdict() for node in self.nodes],
            "edges": [edge._asdict() | {"path": list(edge.path)} for edge in self.edges],
        }


def from_record(name: str, record: Mapping[str, Any]) -> Drawing:
    """Return the drawing that a status document has, which may be of another process."""
    edges = (edge | {"path": tuple(edge["path"])} for edge in record["edges"])
    return Drawing(
        name, record["width"], record["height"], tuple(_made(Box, box) for box in record["boxes"]),
        tuple(_made(Node, node) for node in record["nodes"]), tuple(_made(Edge, edge) for edge in edges),
    )  # fmt: skip


def _made(kind: type[T], record: Mapping[str, Any]) -> T:
    return kind(**{key: value for key, value in record.items() if key in kind.__annotations__})


def draw(topology: Topology) -> Drawing:
    """Return the picture of a topology."""
    boxes, nodes = list[Box](), dict[str, Node]()
    bottom = float(_PAD)
    for name, gateway in topology.gateways.items():
        left, middle = _columns(topology, name)
        height = _HEAD + max(1, len(left), len(middle)) * _ROW
        boxes.append(Box(name, gateway.address, _MARGIN, bottom, height))
        for x, column in zip(_COLUMNS[:2], (left, middle), strict=True):
            for number, node in enumerate(column):
                nodes[node.id] = node._replace(x=x, y=bottom + _HEAD + number * _ROW)
        bottom += height + _PAD
    edges = list({edge.id: edge for edge in _edges(topology)}.values())
    outside = _outside(topology, edges, nodes)
    nodes |= {node.id: node for node in outside}
    tall = max([bottom, *(node.y + NODE_HEIGHT + _PAD for node in outside)])
    return Drawing(topology.name, WIDTH, tall, tuple(boxes), tuple(nodes.values()), _routed(edges, nodes))


def bridge_id(bridge: str, gateway: str) -> str:
    """Return the id of a gateway's copy of a bridge; a side of it has `/NUMBER` behind that."""
    return f"bridge {bridge}@{gateway}"


def gateway_id(gateway: str) -> str:
    """Return the id of a gateway's box."""
    return f"gateway {gateway}"


def link_id(one: str, other: str) -> str:
    """Return the id of the line between two nodes, of which `one` dials, or is the device."""
    return f"{one} -> {other}"


def joined_to(topology: Topology, bus: str) -> list[tuple[str, str, str]]:
    """Return the edges between a bus and others: the id, `dial` or `listen`, and the address of the bus."""
    found = list[tuple[str, str, str]]()
    for one, spec in topology.buses.items():
        for dial in dials_of(topology, one):
            at = listen_at(topology, dial.url, spec.on)
            other = f"url {dial.url}" if at is None else f"bus {at[0]}"
            edge = _between(f"bus {one}", other)
            if one == bus:
                found.append((edge, "dial", dial.url))
            elif at is not None and at[0] == bus:
                found.append((edge, "listen", at[1].url))
    return found


def _between(one: str, other: str) -> str:
    """Return the id of the line between two buses, whichever of them dials."""
    return link_id(*sorted((one, other)))


def _columns(topology: Topology, gateway: str) -> tuple[list[Node], list[Node]]:
    """Return the parts that stand on the left of a gateway's box, and those beside them."""
    buses = [Node(f"bus {name}", "bus", name, gateway) for name in running(topology.buses, gateway)]
    brokers = [Node(f"broker {name}", "broker", name, gateway) for name in running(topology.brokers, gateway)]
    bridges = [
        Node(bridge_id(name, gateway), "bridge", name, gateway, _place(topology, name, gateway))
        for name in running(topology.bridges, gateway)
    ]
    devices = [
        Node(f"device {name}", "device", name, gateway, spec.key)
        for name, spec in running(topology.devices, gateway).items()
    ]
    return buses + brokers, bridges + devices


def _place(topology: Topology, bridge: str, gateway: str) -> str:
    mates = candidates_of(topology, bridge)
    return f"{mates.index(Candidate(bridge, gateway)) + 1} of {len(mates)}" if len(mates) > 1 else ""


def _edges(topology: Topology) -> Iterator[Edge]:
    for edge in edges_of(topology, ()):
        if edge.joint is None:
            yield Edge(_between(edge.one, edge.other), edge.one, edge.other, edge.trunk)
    for joint in joints(topology):
        node = bridge_id(joint.bridge, joint.gateway)
        best = candidates_of(topology, joint.bridge)[0]
        yield Edge(f"{node}/{joint.number}", node, joint.wire, joint.trunk, joint.candidate != best)
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


def _outside(topology: Topology, edges: list[Edge], nodes: Mapping[str, Node]) -> list[Node]:
    """Return the wires and foreign addresses, each beside what joins it, below the one before."""
    labels = {joint.wire: (joint.side.kind, side_label(joint.side)) for joint in reversed(joints(topology))}
    near = defaultdict[str, list[float]](list)
    for edge in edges:
        if edge.other not in nodes and edge.one in nodes:
            near[edge.other].append(nodes[edge.one].y)
    made = list[Node]()
    free: float = _PAD
    for wire in sorted(near, key=lambda wire: sum(near[wire]) / len(near[wire])):
        y = max(free, sum(near[wire]) / len(near[wire]))
        kind, label = labels.get(wire, ("address", wire.removeprefix("url ")))
        made.append(Node(wire, "wire", kind, detail=label.removeprefix(kind).strip(), x=_COLUMNS[2], y=y))
        free = y + _ROW
    return made


def _routed(edges: list[Edge], nodes: Mapping[str, Node]) -> tuple[Edge, ...]:
    """Return the edges between known nodes with their paths. Those at one side of a node share its height."""
    known = [edge for edge in edges if edge.one in nodes and edge.other in nodes]
    ends = defaultdict[tuple[str, int], list[tuple[float, str]]](list)
    for edge in known:
        for node, far, side in _sides(edge, nodes):
            ends[node.id, side].append((far.y, edge.id))
    return tuple(edge._replace(path=_path(edge, nodes, ends)) for edge in known)


def _sides(edge: Edge, nodes: Mapping[str, Node]) -> tuple[tuple[Node, Node, int], tuple[Node, Node, int]]:
    """Return both ends: a node, the other one, and on which side of it the edge begins, -1 for the left."""
    one, other = nodes[edge.one], nodes[edge.other]
    if one.x == other.x:  # both in one column: around it
        side = -1 if one.x == _COLUMNS[0] else 1
        return (one, other, side), (other, one, side)
    side = 1 if one.x < other.x else -1
    return (one, other, side), (other, one, -side)


def _path(
    edge: Edge, nodes: Mapping[str, Node], ends: Mapping[tuple[str, int], list[tuple[float, str]]]
) -> tuple[float, ...]:
    (x1, y1, side1), (x2, y2, side2) = (_end(edge, node, side, ends) for node, _, side in _sides(edge, nodes))
    bow = 40.0 if x1 == x2 else abs(x2 - x1) / 2
    return x1, y1, x1 + side1 * bow, y1, x2 + side2 * bow, y2, x2, y2


def _end(
    edge: Edge, node: Node, side: int, ends: Mapping[tuple[str, int], list[tuple[float, str]]]
) -> tuple[float, float, int]:
    places = sorted(ends[node.id, side])
    number = [name for _, name in places].index(edge.id)
    y = node.y + NODE_HEIGHT * (number + 1) / (len(places) + 1)
    return node.x + (NODE_WIDTH if side > 0 else 0), y, side
