"""A picture of a topology, as text or as Mermaid: pure functions from the model to a string."""

from collections.abc import Iterator
from typing import Literal

from topologies.model import BridgeSpec, Filter, Gateway, Shed, Side, Topology
from topologies.segments import Joint, Segments, bus_at, is_trunk, tapped

Tree = tuple[str, list["Tree"]]
Style = Literal["text", "mermaid"]


def show(topology: Topology, style: Style = "text") -> str:
    """The picture, its last line unended: a tree by gateway, or a Mermaid flowchart."""
    return text(topology) if style == "text" else mermaid(topology)


def text(topology: Topology) -> str:
    gateways = [_gateway(topology, name, gateway) for name, gateway in topology.gateways.items()]
    return "\n".join([topology.name, *_branches(gateways, "")])


def _branches(trees: list[Tree], indent: str) -> Iterator[str]:
    for i, (label, children) in enumerate(trees):
        last = i == len(trees) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{label}"
        yield from _branches(children, indent + ("   " if last else "│  "))


def _gateway(topology: Topology, name: str, gateway: Gateway) -> Tree:
    node = f"  node {gateway.node}" if gateway.node is not None else ""
    parts: list[Tree] = [
        (f"broker {broker}", [(f"listen {listen.url}", []) for listen in spec.listen])
        for broker, spec in topology.brokers.items()
        if spec.on == name
    ]
    parts += [_bus(topology, bus) for bus, spec in topology.buses.items() if spec.on == name]
    parts += [_bridge(topology, b, spec, name) for b, spec in topology.bridges.items() if name in spec.on]
    parts += [
        (f"device {device}", [(f"tap of {', '.join(tapped(topology, spec))}, to {spec.directory}", [])])
        for device, spec in topology.devices.items()
        if spec.on == name
    ]
    return f"gateway {name}  {gateway.address}{node}", parts


def _bus(topology: Topology, name: str) -> Tree:
    bus = topology.buses[name]
    children: list[Tree] = [(f"listen {listen.url}{_trunk(listen.trunk)}", []) for listen in bus.listen]
    for dial in bus.dial:
        target = bus_at(topology, dial.url, bus.on)
        known = f"  (bus {target})" if target else ""
        children.append((f"dial {dial.url}{known}{_trunk(dial.trunk)}", []))
    return f"bus {name}", children


def _bridge(topology: Topology, name: str, spec: BridgeSpec, gateway: str) -> Tree:
    rank = f"  {spec.on.index(gateway) + 1} of {len(spec.on)}" if len(spec.on) > 1 else ""
    pattern = f"  pattern {_pattern(spec.pattern)}" if spec.pattern else ""
    return f"bridge {name}{rank}{pattern}", [(_side(topology, side), []) for side in spec.join]


def _side(topology: Topology, side: Side) -> str:
    pattern = f"  pattern {_pattern(side.pattern)}" if side.pattern else ""
    filtered = "  filtered" if (side.allow, side.deny) != (Filter(), Filter()) else ""
    return side_label(side) + pattern + filtered + _shed(side.shed) + _trunk(is_trunk(topology, side))


def side_label(side: Side) -> str:
    """One side in a few words: `can can0 FD 500000/2000000`."""
    return f"bus {side.bus}" if side.medium is None else side.medium.label()


def _shed(shed: Shed | None) -> str:
    age = f" {shed.age_ms} ms" if shed and shed.age_ms else ""
    return f"  sheds {shed.policy}{age}" if shed else ""


def _trunk(trunk: bool) -> str:
    return "  trunk" if trunk else ""


def _pattern(names: tuple[int | str, ...]) -> str:
    return "/".join(map(str, names))


def mermaid(topology: Topology) -> str:
    """A flowchart: a box for each gateway, round buses, hexagons for bridges; thick lines are trunks."""
    drawing = _Drawing()
    for name, gateway in topology.gateways.items():
        _draw_gateway(drawing, topology, name, gateway)
    for name, bus in topology.buses.items():
        for dial in bus.dial:
            target = bus_at(topology, dial.url, bus.on)
            end = drawing.node(f"bus {target}") if target else drawing.node(dial.url)
            drawing.line(f"bus {name}", "==>" if dial.trunk else "-->", end)
    for name, spec in topology.bridges.items():
        _draw_joins(drawing, topology, name, spec)
    for name, device in topology.devices.items():
        for part in tapped(topology, device):
            drawing.line(part, "-.->", drawing.node(f"device {name}"))
    return "\n".join(["flowchart LR", *drawing.lines])


def _draw_gateway(drawing: "_Drawing", topology: Topology, name: str, gateway: Gateway) -> None:
    drawing.lines.append(
        f'  subgraph {drawing.name(f"gateway {name}")}["{_escape(f"{name} {gateway.address}")}"]'
    )
    for broker, spec in topology.brokers.items():
        drawing.node(f"broker {broker}", "[", "]", spec.on == name)
    for bus, bus_spec in topology.buses.items():
        drawing.node(f"bus {bus}", "([", "])", bus_spec.on == name)
    for bridge, bridge_spec in topology.bridges.items():
        # A standby belongs to several gateways; Mermaid wants it in one: the best.
        drawing.node(f"bridge {bridge}", "{{", "}}", bridge_spec.on[0] == name)
    for device, device_spec in topology.devices.items():
        drawing.node(f"device {device}", "[(", ")]", device_spec.on == name)
    drawing.lines.append("  end")


def _draw_joins(drawing: "_Drawing", topology: Topology, name: str, spec: BridgeSpec) -> None:
    segments = Segments(topology)
    for side in spec.join:
        wire = segments.of(Joint(name, spec, side, spec.on[0]))
        label = wire if wire.startswith("bus ") else side_label(side)
        end = drawing.node(wire, "[/", "/]", label=label)
        drawing.line(f"bridge {name}", "===" if is_trunk(topology, side) else "---", end)


class _Drawing:
    """Lines of Mermaid; its identifiers are our own, as names may hold what Mermaid reserves."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._drawn: set[str] = set()

    def name(self, thing: str) -> str:
        return self._names.setdefault(thing, f"n{len(self._names)}")

    def node(
        self, thing: str, left: str = "[", right: str = "]", wanted: bool = True, label: str = ""
    ) -> str:
        if wanted and thing not in self._drawn:
            self._drawn.add(thing)
            self.lines.append(f'  {self.name(thing)}{left}"{_escape(label or thing)}"{right}')
        return thing

    def line(self, one: str, arrow: str, other: str) -> None:
        self.lines.append(f"  {self.name(one)} {arrow} {self.name(other)}")


def _escape(label: str) -> str:
    return label.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
