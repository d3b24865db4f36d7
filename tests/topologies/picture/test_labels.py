"""The labels of lines stand beside their lines: on no line and no node, where there is room."""

import pytest

from tests.helpers import ROOT
from topologies.loading.loader import load
from topologies.picture.drawing import draw
from topologies.picture.labels import FLAT, TALL, Ground, Label, Rect, curve, labelled, rect_of
from topologies.picture.layout import NARROW, NODE_HEIGHT, WIDE, Drawing, placed

FILES = sorted((ROOT / "topologies").glob("*.yaml"))


def meets(rect: Rect, drawing: Drawing) -> list[str]:
    """Return the lines and nodes that a rectangle meets."""
    x, y, width, height = rect
    lines = [
        edge.id for edge in drawing.edges
        if any(x <= at_x <= x + width and y <= at_y <= y + height for at_x, at_y in curve(edge.path))
    ]  # fmt: skip
    return lines + [
        node.id for node in drawing.nodes
        if node.x < x + width and x < node.x + drawing.node_width
        and node.y < y + height and y < node.y + NODE_HEIGHT
    ]  # fmt: skip


def met(drawing: Drawing) -> list[list[str]]:
    """Return what labels meet, of those that meet anything."""
    labels = [Label(edge.label[0], edge.label[1], int(edge.label[2])) for edge in drawing.edges]
    return [found for label in labels if (found := meets(rect_of(label), drawing))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_label_of_the_examples_lies_on_a_line_or_a_node_and_on_a_phone_hardly_one(file: object) -> None:
    drawing = draw(load(str(file)))
    assert met(placed(drawing, WIDE)) == []
    narrow = met(placed(drawing, NARROW))
    assert len(narrow) <= max(1, len(drawing.edges) // 3)
    assert all(len(one) == 1 for one in narrow)


def test_labels_are_in_the_picture_and_not_on_each_other() -> None:
    straight = (100.0, 50.0, 133.0, 50.0, 166.0, 50.0, 200.0, 50.0)
    found = labelled({"a": straight, "b": straight}, Ground(300, 100))
    rects = [rect_of(found[name]) for name in "ab"]
    assert {label.lines for label in found.values()} <= {1, 2}
    (ax, ay, aw, ah), (bx, by, bw, bh) = rects
    assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay
    assert all(x >= 0 and y >= 0 and x + w <= 300 and y + h <= 100 for x, y, w, h in rects)


@pytest.mark.parametrize("top", [0.0, 2.0, 20.0, 36.0, 39.0])
def test_what_stands_at_any_height_costs_a_label_there(top: float) -> None:
    ground = Ground(100, 40)
    ground.fill((20, top, 10, 1))
    ground.draw([(60, top)])
    assert all(ground.cost((x, top, 10, 1)) > 0 for x in (20, 60))
    assert all(ground.cost((x, 10, 10, 1)) == 0 for x in (20, 60))


def test_where_there_is_no_room_a_label_stands_in_the_middle_of_its_line() -> None:
    path = (0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 4.0, 0.0)
    ((_, label),) = labelled({"a": path}, Ground(10, 10)).items()
    assert label == Label(1.625, 0.0, 2)


def test_a_low_place_takes_a_label_of_one_line() -> None:
    path = (20.0, 40.0, 80.0, 40.0, 140.0, 40.0, 200.0, 40.0)
    ground = Ground(220, 60)
    ground.fill((0, 0, 220, 16))
    ground.fill((0, 44, 220, 16))
    found = labelled({"a": path}, ground)["a"]
    assert rect_of(found)[2:] == FLAT != TALL
    assert rect_of(found)[1] >= 16


def test_a_path_that_comes_from_anywhere_costs_no_more_than_a_bound() -> None:
    assert len(curve((0, 0, 1e9, 0, 0, 1e9, 1e9, 1e9))) == 2
