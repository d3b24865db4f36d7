"""The picture of a topology: every part has a place of its own, ids stay, and hostile text is text."""

from pathlib import Path
from xml.dom import minidom

import pytest

from tests.helpers import ROOT
from topologies.drawing import NODE_HEIGHT, NODE_WIDTH, Node, draw, from_record
from topologies.loader import load
from topologies.svg import Mark, svg

FILES = sorted((ROOT / "topologies").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_overlaps_and_the_svg_is_whole(file: Path) -> None:
    drawing = draw(load(str(file)))
    nodes = drawing.nodes
    assert not any(overlap(one, other) for one in nodes for other in nodes if one is not other)
    assert all(one.x >= 0 and one.x + NODE_WIDTH <= drawing.width for one in nodes)
    assert all(one.y + NODE_HEIGHT <= drawing.height for one in nodes)
    assert {end for edge in drawing.edges for end in (edge.one, edge.other)} <= {one.id for one in nodes}
    assert len(minidom.parseString(svg(drawing)).getElementsByTagName("path")) == len(drawing.edges)
    assert from_record(drawing.name, drawing.as_record()) == drawing


def overlap(one: Node, other: Node) -> bool:
    return abs(one.x - other.x) < NODE_WIDTH and abs(one.y - other.y) < NODE_HEIGHT


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
