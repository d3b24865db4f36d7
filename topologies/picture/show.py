"""Drawings of a topology as text or Mermaid, by pure functions from the model to a string."""

from collections.abc import Iterator
from typing import Literal

from bus.key_types import Patterns
from bus.quantity.telling import line
from bus.wire.notation import text_of
from devices.device import DeviceSpec
from topologies.model import (
    BridgeSpec,
    Candidate,
    Filter,
    Gateway,
    Shed,
    Side,
    Topology,
    candidates_of,
    gateways_of,
    running,
)
from topologies.quantities import of_side
from topologies.wiring.durable import durable_lines, keepings, kept_words
from topologies.wiring.filters import is_bus, takes_frames_only
from topologies.wiring.reach import brokers_of, bus_at, dials_of
from topologies.wiring.segments import Edge, Joint, Wiring, is_trunk, joined, wired

Tree = tuple[str, list["Tree"]]
_PATTERNS = 3  # of a side
_QUANTITIES = 20  # of a side, and lines of its medium
Style = Literal["text", "mermaid"]
_SHAPES = {
    "brokers": ("broker", "[", "]"),
    "buses": ("bus", "([", "])"),
    "bridges": ("bridge", "{{", "}}"),
    "devices": ("device", "[(", ")]"),
}


def show(topology: Topology, style: Style = "text") -> str:
    """Return a drawing, without a last newline: a tree of the gateways, or a Mermaid flowchart."""
    return _text(topology) if style == "text" else _mermaid(wired(topology))


def _text(topology: Topology) -> str:
    gateways = [_gateway(topology, name, gateway) for name, gateway in topology.gateways.items()]
    return "\n".join([topology.name, *_branches(gateways, "")])


def _branches(trees: list[Tree], indent: str) -> Iterator[str]:
    for i, (label, children) in enumerate(trees):
        last = i == len(trees) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{label}"
        yield from _branches(children, indent + ("   " if last else "│  "))


def _line(*words: str) -> str:
    return "  ".join(filter(None, words))


def _gateway(topology: Topology, name: str, gateway: Gateway) -> Tree:
    node = f"node {gateway.node}" if gateway.node is not None else ""
    parts: list[Tree] = [
        (f"broker {broker}", [(f"listen {listen.url}", []) for listen in spec.listen])
        for broker, spec in running(topology.brokers, name).items()
    ]
    parts += [_bus(topology, bus) for bus in running(topology.buses, name)]
    parts += [_bridge(topology, b, spec, name) for b, spec in running(topology.bridges, name).items()]
    parts += [_device(topology, device, spec) for device, spec in running(topology.devices, name).items()]
    return _line(f"gateway {name}", gateway.address, node), parts


def _bus(topology: Topology, name: str) -> Tree:
    bus = topology.buses[name]
    kept = {
        (one.mode, one.address.url): [(kept_words(topology, one), list[Tree]())]
        for one in keepings(topology, name)
    }
    children: list[Tree] = [
        (_line(f"listen {listen.url}", _trunk(listen.trunk)), kept.get(("listen", listen.url), []))
        for listen in bus.listen
    ]
    for dial in dials_of(topology, name):
        target = bus_at(topology, dial.url, bus.on)
        known = f"(bus {target})" if target else ""
        label = _line(f"dial {dial.url}", known, _trunk(dial.trunk))
        children.append((label, kept.get(("dial", dial.url), [])))
    return f"bus {name}", children


def _device(topology: Topology, name: str, spec: DeviceSpec) -> Tree:
    listens: list[Tree] = [(f"listen {listener.url}", []) for listener in spec.listens()]
    return f"device {name}", [(spec.label(joined(topology, spec)), []), *listens]


def place_of(topology: Topology, bridge: str, gateway: str) -> str:
    """Return the place of a gateway among those that run a bridge, such as `1 of 2`; "" if it is alone."""
    mates = candidates_of(topology, bridge)
    if len(mates) == 1:
        return ""
    place = f"{mates.index(Candidate(bridge, gateway)) + 1} of {len(mates)}"
    return f"{place} in parallel" if topology.bridges[bridge].is_parallel else place


def _bridge(topology: Topology, name: str, spec: BridgeSpec, gateway: str) -> Tree:
    group = f"group {spec.group}" if spec.group else ""
    makes_frames = any(side.opaque is not None for side in spec.at(gateway))
    framed = _frames_only(takes_frames_only(spec) and not makes_frames)
    label = _line(f"bridge {name}", group, place_of(topology, name, gateway), _pattern(spec.pattern), framed)
    return label, [
        (_side(topology, side), [*_carried(side), *_quantities(side)]) for side in spec.at(gateway)
    ]


def _side(topology: Topology, side: Side) -> str:
    filtered = "filtered" if (side.allow, side.deny) != (Filter(), Filter()) else ""
    trunk = _trunk(is_trunk(topology, side))
    framed = _frames_only(is_bus(side) and side.opaque is None and takes_frames_only(side))
    words = [
        *side.renaming.words(),
        *_passing(side),
        *([f"opaque {text_of(side.opaque)}"] if side.opaque else []),
    ]
    return _line(side_label(side), _pattern(side.pattern), *words, filtered, framed, _shed(side.shed), trunk)


def _carried(side: Side) -> list[Tree]:
    """Return a leaf for each of the first lines that the medium of a side says."""
    return _leaves([] if side.medium is None else [*side.medium.lines()], "")


def _quantities(side: Side) -> list[Tree]:
    """Return a leaf for each of the first values that the side's devices have."""
    return _leaves([line(one) for one in of_side(side)], ": --values")


def _leaves(lines: list[str], hint: str) -> list[Tree]:
    more = len(lines) - _QUANTITIES
    return [(one, []) for one in (*lines[:_QUANTITIES], *([f"and {more} more{hint}"] if more > 0 else []))]


def side_label(side: Side) -> str:
    """Return a short label for a side, such as `can can0 FD 500000/2000000`."""
    if side.medium is None:
        return f"bus {side.bus}"
    spoken = "" if side.speaks is None else f" {side.speaks.label()}"
    return f"{side.medium.label()}{spoken}"


def _passing(side: Side) -> list[str]:
    """Return the patterns that the side's medium lets through: one text by key, none for all patterns."""
    passing = side.medium and side.medium.passing
    if not passing:
        return []
    lists = zip(passing.keys, (passing.inward, passing.outward), strict=True)
    return [f"{key} {_some(patterns)}" for key, patterns in lists if () not in patterns]


def _some(patterns: Patterns) -> str:
    more = f" and {len(patterns) - _PATTERNS} more" if len(patterns) > _PATTERNS else ""
    return (", ".join(map(text_of, patterns[:_PATTERNS])) or "nothing") + more


def _shed(shed: Shed | None) -> str:
    age = f" {shed.age_ms} ms" if shed and shed.age_ms else ""
    return f"sheds {shed.policy}{age}" if shed else ""


def _trunk(trunk: bool) -> str:
    return "trunk" if trunk else ""


def _frames_only(framed: bool) -> str:
    return "frames only" if framed else ""


def _pattern(names: tuple[int | str, ...]) -> str:
    return f"pattern {text_of(names)}" if names else ""


def _mermaid(wiring: Wiring) -> str:
    """Draw gateways as boxes, buses round and bridges as hexagons. What a side lets through is at its line.

    Thick lines are trunks. Dotted ones, with the name of its gateway, are what only a standby joins.
    """
    topology, best, drawing = wiring.topology, wiring.best, _Drawing()
    kept = durable_lines(topology)
    for name, gateway in topology.gateways.items():
        _draw_gateway(drawing, topology, name, gateway)
    drawn = set[tuple[str, str, int]]()
    for edge in wiring.edges:
        if edge.joint is None:
            end = drawing.node(edge.other, label=edge.other.removeprefix("url "))
            is_durable = edge.trunk and tuple(sorted((edge.one, edge.other))) in kept
            arrow = "==>|durable|" if is_durable else "==>" if edge.trunk else "-->"
            drawing.line(edge.one, arrow, end)
        elif (key := (edge.one, edge.other, edge.joint.number)) not in drawn:
            drawn.add(key)
            is_best = edge.joint.candidate in best
            _draw_side(drawing, edge, edge.joint, is_best)
    for wire, broker in _networks(wiring):
        drawing.line(wire, "---", drawing.node(f"broker {broker}"))
    for name, device in topology.devices.items():
        for part in joined(topology, device):
            drawing.line(part, "-.->" if device.inside else "---", drawing.node(f"device {name}"))
    return "\n".join(["flowchart LR", *drawing.lines])


def _networks(wiring: Wiring) -> list[tuple[str, str]]:
    """Return each wire that brokers of the file make, with each of them that a side dials."""
    topology = wiring.topology
    sides = [(joint.wire, joint.side.medium) for joint in wiring.joints if joint.side.medium]
    pairs = [(wire, broker) for wire, medium in sides for broker in brokers_of(topology, medium)]
    return list(dict.fromkeys(pair for pair in pairs if pair[1] in topology.brokers))


def _draw_side(drawing: "_Drawing", edge: Edge, joint: Joint, is_best: bool) -> None:
    label = edge.other if edge.other.startswith("bus ") else side_label(joint.side)
    line, words = "===" if edge.trunk else "---", _passing(joint.side)
    if not is_best:
        line, words = "-.-", [joint.gateway, *words]
    if words:
        line += f'|"{_escape("; ".join(words))}"|'
    drawing.line(edge.one, line, drawing.node(edge.other, "[/", "/]", label))


def _draw_gateway(drawing: "_Drawing", topology: Topology, name: str, gateway: Gateway) -> None:
    drawing.lines.append(
        f'  subgraph {drawing.name(f"gateway {name}")}["{_escape(f"{name} {gateway.address}")}"]'
    )
    for section, (kind, left, right) in _SHAPES.items():
        for part, spec in topology.sections[section].items():
            # Mermaid allows a node in one box only, so a bridge with standbys is drawn at its best gateway.
            if gateways_of(spec)[0] == name:
                drawing.node(f"{kind} {part}", left, right)
    drawing.lines.append("  end")


class _Drawing:
    """The lines of a Mermaid drawing. It uses identifiers of our own: names may contain reserved words."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._drawn: set[str] = set()

    def name(self, thing: str) -> str:
        return self._names.setdefault(thing, f"n{len(self._names)}")

    def node(self, thing: str, left: str = "[", right: str = "]", label: str = "") -> str:
        if thing not in self._drawn:
            self._drawn.add(thing)
            self.lines.append(f'  {self.name(thing)}{left}"{_escape(label or thing)}"{right}')
        return thing

    def line(self, one: str, arrow: str, other: str) -> None:
        self.lines.append(f"  {self.name(one)} {arrow} {self.name(other)}")


def _escape(label: str) -> str:
    return label.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
