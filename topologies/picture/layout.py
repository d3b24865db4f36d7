"""The places of a picture: nodes, edges and boxes in pixels, for a wide page or a narrow one. Pure.

Each gateway is a box, below the one before; many stand in several banks, side by side. Buses and brokers
stand on the left in it, bridges and devices beside them. Wires and addresses outside of the file stand to the
right of the boxes of a bank; in a narrow picture, below the first gateway that joins them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from topologies.picture.labels import Ground, labelled

NODE_WIDTH, NODE_HEIGHT = 152, 56
_ROW, _PAD, _HEAD = 76, 14, 30
_COLUMNS = {"bus": 0, "broker": 0, "bridge": 1, "device": 1, "wire": 2}

T = TypeVar("T")


class PictureNode(NamedTuple):
    """A part or a wire. `gateway` is "" for what is outside of all; `x` and `y` are its upper left corner."""

    id: str
    kind: str
    name: str
    gateway: str = ""
    detail: str = ""
    x: float = 0
    y: float = 0


class Edge(NamedTuple):
    """A line between two nodes, by their ids. `standby`: only used when this gateway takes over. `durable`: a
    trunk with a journal.

    `path` is a cubic curve: its two ends with their two handles between them, each as x and y. `label` is the
    middle of its label and how many lines that has; without it the label stands in the middle of the line.
    """

    id: str
    one: str
    other: str
    trunk: bool = False
    standby: bool = False
    path: tuple[float, ...] = ()
    durable: bool = False
    label: tuple[float, ...] = ()


class Box(NamedTuple):
    """A gateway."""

    gateway: str
    address: str
    x: float = 0
    y: float = 0
    height: float = 0
    width: float = 0


class Drawing(NamedTuple):
    """A picture of a whole topology."""

    name: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    nodes: tuple[PictureNode, ...]
    edges: tuple[Edge, ...]
    node_width: float = NODE_WIDTH

    def as_record(self) -> dict[str, Any]:
        """Return it as a status document has it."""
        return {
            "width": self.width,
            "height": self.height,
            "boxes": [box._asdict() for box in self.boxes],
            "nodes": [node._asdict() for node in self.nodes],
            "edges": [
                edge._asdict() | {"path": list(edge.path), "label": list(edge.label)} for edge in self.edges
            ],
        }


def from_record(name: str, record: Mapping[str, Any]) -> Drawing:
    """Return the drawing that a status document has, which may be of another process."""
    edges = (
        edge | {"path": tuple(edge["path"]), "label": tuple(edge.get("label", ()))}
        for edge in record["edges"]
    )
    return Drawing(
        name, record["width"], record["height"], tuple(_made(Box, box) for box in record["boxes"]),
        tuple(_made(PictureNode, node) for node in record["nodes"]),
        tuple(_made(Edge, edge) for edge in edges),
    )  # fmt: skip


def _made(kind: type[T], record: Mapping[str, Any]) -> T:
    return kind(**{key: value for key, value in record.items() if key in kind.__annotations__})


class Layout(NamedTuple):
    """The measures of a picture.

    `columns` are the left ends of nodes: buses and brokers, bridges and devices, wires. `box` is the left end
    and the width of a gateway. Edges between nodes of one column go around them on its side of `sides`, -1
    for the left. `bow` is how far the handles of such an edge stand out, of a short one and of a long one.
    `below`: wires stand below gateways.
    """

    width: float
    node_width: float
    columns: tuple[float, float, float]
    box: tuple[float, float]
    sides: tuple[int, int, int]
    bow: tuple[float, float]
    below: bool = False

    def shifted(self, bank: int) -> "Layout":
        """Return the layout of a bank, by its number from the left."""
        x = bank * self.width
        one, other, third = self.columns
        return self._replace(columns=(one + x, other + x, third + x), box=(self.box[0] + x, self.box[1]))


WIDE = Layout(824, NODE_WIDTH, (118, 374, 658), (104, 436), (-1, 1, 1), (40, 40))
NARROW = Layout(400, 120, (6, 196, 196), (2, 322), (1, 1, 1), (14, 36), below=True)
_LONG = 700
_HEADER = (150, 100, 24)  # of a gateway: the widths of both words at its head, and the height
_LABELLED = 100  # edges, which takes less than half a second
_BANK = 12  # gateways that stand below each other in any case
_SHAPE = 16 / 9  # of a screen


Parts = Mapping[tuple[str, int], list[PictureNode]]
"""The nodes of each gateway and column."""


def placed(drawing: Drawing, layout: Layout) -> Drawing:
    """Return a picture with its places in a layout, whatever places it had."""
    parts, near = _parts(drawing), _near(drawing)
    boxes, nodes, tall = list[Box](), dict[str, PictureNode](), float(_PAD)
    banks = _banks(drawing.boxes, parts, layout)
    for number, bank in enumerate(banks):
        placed_boxes, made, bottom = _bank(bank, parts, near, layout.shifted(number))
        near = {wire: ends for wire, ends in near.items() if wire.id not in made}
        boxes, nodes, tall = boxes + placed_boxes, nodes | made, max(tall, bottom)
    tall = max([tall, *(node.y + NODE_HEIGHT + _PAD for node in nodes.values())])
    whole = layout._replace(width=layout.width * len(banks))
    edges = _labelled(_routed(drawing.edges, nodes, layout), nodes.values(), boxes, whole, tall)
    size = whole.width, tall
    return Drawing(drawing.name, *size, tuple(boxes), tuple(nodes.values()), edges, layout.node_width)


def _bank(
    boxes: Iterable[Box], parts: Parts, near: Mapping[PictureNode, list[str]], layout: Layout
) -> tuple[list[Box], dict[str, PictureNode], float]:
    """Return the boxes of a bank with their places, the nodes by their ids, and the height of the boxes."""
    bottom, found, nodes = float(_PAD), list[Box](), dict[str, PictureNode]()
    for box in boxes:
        height = _height(box, parts)
        found.append(box._replace(x=layout.box[0], y=bottom, height=height, width=layout.box[1]))
        nodes |= _rows((*parts[box.gateway, 0], *parts[box.gateway, 1]), layout, bottom + _HEAD)
        bottom += height + _PAD
        if layout.below:
            open_wires = {wire: ends for wire, ends in near.items() if wire.id not in nodes}
            wires = _wires(open_wires, nodes, layout, bottom)
            nodes |= wires
            bottom += len(wires) * _ROW
    left = {wire: ends for wire, ends in near.items() if wire.id not in nodes}
    return found, nodes | _wires(left, nodes, layout, _PAD), bottom


def _height(box: Box, parts: Parts) -> float:
    return _HEAD + max(1, len(parts[box.gateway, 0]), len(parts[box.gateway, 1])) * _ROW


def _banks(boxes: Sequence[Box], parts: Parts, layout: Layout) -> list[Sequence[Box]]:
    """Return the boxes in as many banks as make the picture as wide as a screen is; in one if narrow."""
    if layout.below or len(boxes) <= _BANK:
        return [boxes]
    whole = sum(_height(box, parts) + _PAD for box in boxes)
    count = max(1, round((whole * _SHAPE / layout.width) ** 0.5))
    size = -(-len(boxes) // count)
    return [boxes[start : start + size] for start in range(0, len(boxes), size)]


def _labelled(
    edges: tuple[Edge, ...], nodes: Iterable[PictureNode], boxes: Iterable[Box], layout: Layout, height: float
) -> tuple[Edge, ...]:
    """Return the edges with the places of their labels; of too many edges, as they are."""
    if len(edges) > _LABELLED:
        return edges
    ground = Ground(layout.width, height)
    for node in nodes:
        ground.fill((node.x, node.y, layout.node_width, NODE_HEIGHT))
    for box in boxes:  # its name, and its state at the other end
        ground.fill((box.x, box.y, _HEADER[0], _HEADER[2]))
        ground.fill((box.x + box.width - _HEADER[1], box.y, _HEADER[1], _HEADER[2]))
    found = labelled({edge.id: edge.path for edge in edges}, ground)
    return tuple(edge._replace(label=tuple(found[edge.id])) for edge in edges)


def _parts(drawing: Drawing) -> Parts:
    """Return the nodes of each gateway and column."""
    found = defaultdict[tuple[str, int], list[PictureNode]](list)
    for node in drawing.nodes:
        found[node.gateway, _COLUMNS[node.kind]].append(node)
    return found


def _near(drawing: Drawing) -> dict[PictureNode, list[str]]:
    """Return the ids of the parts that join each wire."""
    found = {node: list[str]() for node in drawing.nodes if node.kind == "wire"}
    by_id = {node.id: node for node in found}
    for edge in drawing.edges:
        if edge.other in by_id:
            found[by_id[edge.other]].append(edge.one)
    return found


def _rows(parts: Iterable[PictureNode], layout: Layout, top: float) -> dict[str, PictureNode]:
    """Return parts of one gateway by their ids, each column from `top` on."""
    made, rows = dict[str, PictureNode](), [0, 0]
    for node in parts:
        column = _COLUMNS[node.kind]
        made[node.id] = node._replace(x=layout.columns[column], y=top + rows[column] * _ROW)
        rows[column] += 1
    return made


def _wires(
    near: Mapping[PictureNode, Sequence[str]], nodes: Mapping[str, PictureNode], layout: Layout, top: float
) -> dict[str, PictureNode]:
    """Return the wires that known parts join by their ids, each beside these and below the one before."""
    heights = {wire: [nodes[one].y for one in ends if one in nodes] for wire, ends in near.items()}
    beside = {wire: sum(ys) / len(ys) for wire, ys in heights.items() if ys}
    made, free = dict[str, PictureNode](), top
    for wire in sorted(beside, key=lambda wire: beside[wire]):
        y = max(free, beside[wire])
        made[wire.id] = wire._replace(x=layout.columns[2], y=y)
        free = y + _ROW
    return made


def _routed(edges: Iterable[Edge], nodes: Mapping[str, PictureNode], layout: Layout) -> tuple[Edge, ...]:
    """Return the edges with their paths. Those at one side of a node share its height."""
    known = [edge for edge in edges if edge.one in nodes and edge.other in nodes]
    ends = defaultdict[tuple[str, int], list[tuple[float, str]]](list)
    for edge in known:
        for node, far, side in _sides(edge, nodes, layout):
            ends[node.id, side].append((far.y, edge.id))
    return tuple(edge._replace(path=_path(edge, nodes, layout, ends)) for edge in known)


def _sides(
    edge: Edge, nodes: Mapping[str, PictureNode], layout: Layout
) -> tuple[tuple[PictureNode, PictureNode, int], tuple[PictureNode, PictureNode, int]]:
    """Return both ends: a node, the other one, and on which side of it the edge begins, -1 for the left."""
    one, other = nodes[edge.one], nodes[edge.other]
    if one.x == other.x:  # both in one column: around it
        side = layout.sides[layout.columns.index(one.x % layout.width)]
        return (one, other, side), (other, one, side)
    side = 1 if one.x < other.x else -1
    return (one, other, side), (other, one, -side)


Ends = Mapping[tuple[str, int], Sequence[tuple[float, str]]]


def _path(edge: Edge, nodes: Mapping[str, PictureNode], layout: Layout, ends: Ends) -> tuple[float, ...]:
    (x1, y1, side1), (x2, y2, side2) = (
        _end(edge, node, side, layout, ends) for node, _, side in _sides(edge, nodes, layout)
    )
    short, long = layout.bow
    around = short + (long - short) * min(1.0, abs(y2 - y1) / _LONG)
    bow = around if x1 == x2 else abs(x2 - x1) / 2
    return x1, y1, x1 + side1 * bow, y1, x2 + side2 * bow, y2, x2, y2


def _end(edge: Edge, node: PictureNode, side: int, layout: Layout, ends: Ends) -> tuple[float, float, int]:
    places = sorted(ends[node.id, side])
    number = [name for _, name in places].index(edge.id)
    y = node.y + NODE_HEIGHT * (number + 1) / (len(places) + 1)
    return node.x + (layout.node_width if side > 0 else 0), y, side
