"""The picture of a topology: every part has a place of its own, ids stay, and hostile text is text."""

import re
from pathlib import Path
from xml.dom import minidom

import pytest

from tests.helpers import ROOT
from topologies.loading.loader import load, loads
from topologies.picture.drawing import draw
from topologies.picture.layout import (
    NARROW,
    NODE_HEIGHT,
    WIDE,
    Box,
    Edge,
    Layout,
    PictureNode,
    from_record,
    placed,
)
from topologies.picture.marks import Mark
from topologies.picture.svg import svg
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

FILES = sorted((ROOT / "topologies").glob("*.yaml"))


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_overlaps_and_the_svg_is_whole(file: Path, layout: Layout) -> None:
    drawing = placed(draw(load(str(file))), layout)
    nodes = drawing.nodes
    assert not any(overlap(one, other, layout) for one in nodes for other in nodes if one is not other)
    assert all(one.x >= 0 and one.x + layout.node_width <= drawing.width for one in nodes)
    assert all(one.y + NODE_HEIGHT <= drawing.height for one in nodes)
    assert all(0 <= x <= drawing.width for edge in drawing.edges for x in curve(edge))
    boxes = {box.gateway: box for box in drawing.boxes}
    for box in drawing.boxes:
        inside = {one.gateway for one in nodes if is_in(one, box)}
        assert inside <= {box.gateway}
    assert all(is_in(one, boxes[one.gateway]) for one in nodes if one.gateway)
    assert {end for edge in drawing.edges for end in (edge.one, edge.other)} <= {one.id for one in nodes}
    assert len(minidom.parseString(svg(drawing)).getElementsByTagName("path")) == len(drawing.edges)
    read = from_record(drawing.name, drawing.as_record())
    assert read._replace(node_width=layout.node_width) == drawing
    assert placed(read, WIDE) == draw(load(str(file)))


def overlap(one: PictureNode, other: PictureNode, layout: Layout) -> bool:
    return abs(one.x - other.x) < layout.node_width and abs(one.y - other.y) < NODE_HEIGHT


def is_in(node: PictureNode, box: Box) -> bool:
    """Return whether a node and a box share any place."""
    beside = node.x >= box.x + box.width or node.y >= box.y + box.height
    return not beside and node.y + NODE_HEIGHT > box.y


def curve(edge: Edge) -> list[float]:
    """Return some x along an edge."""
    x1, _, ax, _, bx, _, x2, _ = edge.path
    steps = [step / 10 for step in range(11)]
    return [
        x1 * (1 - t) ** 3 + 3 * ax * t * (1 - t) ** 2 + 3 * bx * t**2 * (1 - t) + x2 * t**3 for t in steps
    ]


def test_long_names_end_before_the_sign_and_within_the_box() -> None:
    name = "a" * 60
    text = f"name: t\ngateways: {{{name}: {{address: {name}.example}}}}\nbuses: {{{name}: {{on: {name}}}}}\n"
    for layout in (WIDE, NARROW):
        shown = svg(placed(draw(loads(text)), layout), {f"bus {name}": Mark("bad", "waiting " * 9)})
        (shortened,) = re.findall('class="name"[^>]*>([^<]*)', shown)
        assert "…" in shortened
        assert len(shortened) * 8 <= layout.node_width - 34
        head = re.findall("<tspan[^>]*>([^<]*)", shown)
        assert sum(map(len, head)) * 7 <= layout.box[1] - 110  # beside what is said of the gateway


def test_each_gateway_has_its_copy_of_a_bridge_and_the_standby_is_dashed() -> None:
    drawing = draw(load(str(ROOT / "topologies/failover.yaml")))
    ids = {one.id for one in drawing.nodes}
    assert {"bridge motor@gw-a", "bridge motor@gw-b", "bus hall-a", "broker spare"} <= ids
    edges = {edge.id: edge for edge in drawing.edges}
    assert not edges["bridge motor@gw-a/1"].standby
    assert edges["bridge motor@gw-b/1"].standby
    assert edges["bus hall-a -> bus hall-b"].trunk


def test_marks_are_shown_and_are_text() -> None:
    drawing = draw(load(str(ROOT / "topologies/failover.yaml")))
    marks = {
        "bus hall-a": Mark("bad", "<script>"),
        "bridge motor@gw-a/1": Mark("ok", "up", ("in 1/s", "out 2/s")),
    }
    shown = svg(drawing, marks)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "in 1/s" in shown
    assert "▲" in shown


def test_the_picture_in_the_docs_is_that_of_the_file() -> None:
    from appliance.web.assets import asset

    made = svg(draw(load(str(ROOT / "topologies/failover.yaml"))), None, asset("drawing.css"))
    assert (ROOT / "docs/failover.svg").read_text() == made + "\n"


LINKED = """\
name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}}
brokers: {m: {on: a, listen: 'tcp://10.0.0.1:9'}}
buses:
  p: {on: a, listen: ['tcp://0.0.0.0:4', 'tcp://0.0.0.0:5']}
  q: {on: b, dial: ['tcp://10.0.0.1:5', 'tcp://192.0.2.9:1']}
  alone: {on: a}
bridges:
  x: {on: a, join: [bus: p, tmq: {brokers: [m, 'tcp://192.0.2.7:9']}]}
devices:
  w: {on: a, tap: [p, x], directory: /x}
"""


@pytest.mark.parametrize(
    ("bus", "ends"),
    [
        ("p", [("bus p -> bus q", "listen", "tcp://0.0.0.0:5")]),
        (
            "q",
            [
                ("bus p -> bus q", "dial", "tcp://10.0.0.1:5"),
                ("bus q -> url tcp://192.0.2.9:1", "dial", "tcp://192.0.2.9:1"),
            ],
        ),
        ("alone", []),
    ],
)
def test_a_bus_knows_its_lines_by_the_address_that_it_has_there(
    bus: str, ends: list[tuple[str, str, str]]
) -> None:
    topology = loads(LINKED)
    owner = topology.buses[bus].on
    joined = resolve(wired(topology), owner).buses[bus].joined
    assert [(one.edge, *one.place.split()) for one in joined] == ends
    assert {edge for edge, _, _ in ends} <= {edge.id for edge in draw(topology).edges}


def test_brokers_and_devices_have_lines_to_what_they_join_and_an_address_outside_to_no_broker() -> None:
    drawing = draw(loads(LINKED))
    assert [edge.id for edge in drawing.edges if edge.one.startswith(("broker", "device"))] == [
        "broker m -> tmq m",
        "device w -> bus p",
        "device w -> bridge x@a",
    ]


def test_a_bridge_tells_its_place_among_candidates_and_none_if_it_is_alone() -> None:
    failover = draw(load(str(ROOT / "topologies/failover.yaml")))
    details = {node.id: node.detail for node in (*failover.nodes, *draw(loads(LINKED)).nodes)}
    assert details["bridge motor@gw-a"] == "1 of 2"
    assert details["bridge motor@gw-b"] == "2 of 2"
    assert details["bridge x@a"] == ""
