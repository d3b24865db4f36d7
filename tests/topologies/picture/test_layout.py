"""The places of a small picture, number by number: columns, rows, what stands beside what, and the lines."""

import pytest

from topologies.picture.layout import (
    NARROW,
    NODE_WIDTH,
    WIDE,
    Box,
    Drawing,
    Edge,
    Layout,
    PictureNode,
    placed,
)

PARTS = [
    PictureNode("p", "bus", "p", "a"),
    PictureNode("m", "broker", "m", "a"),
    PictureNode("q", "bus", "q", "b"),
    PictureNode("x", "bridge", "x", "a"),
    PictureNode("d", "device", "d", "a"),
    PictureNode("y", "bridge", "y", "b"),
    *(PictureNode(name, "wire", name) for name in ("w1", "w2", "w3")),
]
ENDS = ["x p", "x w1", "y w1", "y w2", "y q", "p q", "d x", "x w3", "x gone", "gone p"]
EDGES = [Edge(ends, ends.split()[0], ends.split()[1]) for ends in ENDS]
BOXES = Box("a", "10.0.0.1"), Box("b", "10.0.0.2"), Box("c", "10.0.0.3")
DRAWING = Drawing("t", 0, 0, BOXES, tuple(PARTS), tuple(EDGES))

Places = dict[str, tuple[float, float]]


def places(layout: Layout) -> Places:
    return {node.id: (node.x, node.y) for node in placed(DRAWING, layout).nodes}


def paths(layout: Layout) -> dict[str, list[int]]:
    return {edge.id: [round(at) for at in edge.path] for edge in placed(DRAWING, layout).edges}


def test_what_has_no_place_yet_is_at_zero_and_is_no_trunk_and_no_standby() -> None:
    assert PARTS[0][4:] == ("", 0, 0)
    assert EDGES[0][3:] == (False, False, (), False, ())
    assert BOXES[0][2:] == (0, 0, 0, 0)
    assert DRAWING.node_width == NODE_WIDTH == 152


def test_gateways_are_below_each_other_and_an_empty_one_has_room_for_a_row() -> None:
    made = placed(DRAWING, WIDE)
    assert [box[2:] for box in made.boxes] == [
        (104, 14, 182, 436),
        (104, 210, 106, 436),
        (104, 330, 106, 436),
    ]
    assert (made.width, made.height, made.node_width) == (824, 450, 152)
    narrow = placed(DRAWING, NARROW)
    assert [box[2:] for box in narrow.boxes] == [(2, 14, 182, 322), (2, 362, 106, 322), (2, 558, 106, 322)]
    assert (narrow.width, narrow.height, narrow.node_width) == (400, 678, 120)


def test_a_wide_picture_has_three_columns_and_wires_are_beside_the_middle_of_what_joins_them() -> None:
    assert places(WIDE) == {
        "p": (118, 44),
        "m": (118, 120),
        "x": (374, 44),
        "d": (374, 120),
        "q": (118, 240),
        "y": (374, 240),
        "w1": (658, 142),
        "w2": (658, 240),
        "w3": (658, 44),
    }


def test_many_gateways_stand_in_banks_as_wide_as_a_screen_and_their_wires_beside_them() -> None:
    names = [f"g{number}" for number in range(100)]
    nodes = [
        node
        for name in names
        for node in (PictureNode(f"b{name}", "bus", name, name), PictureNode(f"w{name}", "wire", ""))
    ]
    edges = [Edge(f"e{name}", f"b{name}", f"w{name}") for name in names]
    edges += [Edge(f"t{name}", f"b{name}", "bg0", trunk=True) for name in names[1:]]
    many = Drawing("t", 0, 0, tuple(Box(name, "") for name in names), tuple(nodes), tuple(edges))
    made, narrow = placed(many, WIDE), placed(many, NARROW)
    assert 1.3 < made.width / made.height < 2.3
    assert made.width % WIDE.width == 0
    at = {node.id: node for node in made.nodes}
    assert len({(node.x, node.y) for node in made.nodes}) == 200
    assert all(0 < at[f"w{name}"].x - at[f"b{name}"].x < WIDE.width for name in names)
    assert len(made.edges) == 199
    assert (narrow.width, len({box.x for box in narrow.boxes})) == (NARROW.width, 1)


def test_a_narrow_picture_has_wires_below_the_first_gateway_that_joins_them() -> None:
    assert places(NARROW) == {
        "p": (6, 44),
        "m": (6, 120),
        "x": (196, 44),
        "d": (196, 120),
        "w1": (196, 210),
        "w3": (196, 286),
        "q": (6, 392),
        "y": (196, 392),
        "w2": (196, 482),
    }


def test_wires_beside_one_part_are_below_each_other_and_the_picture_is_tall_enough() -> None:
    wires = [PictureNode(name, "wire", name) for name in ("w1", "w2", "w3")]
    edges = tuple(Edge(wire.id, "x", wire.id) for wire in wires)
    made = placed(Drawing("t", 0, 0, BOXES[:1], (PARTS[3], *wires), edges), WIDE)
    assert [node.y for node in made.nodes] == [44, 44, 120, 196]
    assert made.height == 196 + 56 + 14


def test_lines_share_the_height_of_a_node_in_the_order_of_their_other_ends() -> None:
    assert paths(WIDE) == {
        "x p": [374, 72, 322, 72, 322, 72, 270, 72],
        "x w1": [526, 86, 592, 86, 592, 161, 658, 161],
        "y w1": [526, 259, 592, 259, 592, 179, 658, 179],
        "y w2": [526, 277, 592, 277, 592, 268, 658, 268],
        "y q": [374, 268, 322, 268, 322, 268, 270, 268],
        "p q": [118, 72, 78, 72, 78, 268, 118, 268],
        "d x": [526, 148, 566, 148, 566, 72, 526, 72],
        "x w3": [526, 58, 592, 58, 592, 72, 658, 72],
    }


def test_in_a_narrow_picture_long_lines_of_a_column_stand_out_further_than_short_ones() -> None:
    assert paths(NARROW) == {
        "x p": [196, 72, 161, 72, 161, 63, 126, 63],
        "x w1": [316, 72, 335, 72, 335, 229, 316, 229],
        "y w1": [316, 411, 335, 411, 335, 247, 316, 247],
        "y w2": [316, 429, 333, 429, 333, 510, 316, 510],
        "y q": [196, 420, 161, 420, 161, 429, 126, 429],
        "p q": [126, 81, 150, 81, 150, 411, 126, 411],
        "d x": [316, 148, 333, 148, 333, 58, 316, 58],
        "x w3": [316, 86, 337, 86, 337, 314, 316, 314],
    }


@pytest.mark.parametrize(("rows", "bow"), [(9, 14 + 22 * 684 / 700), (10, 36), (30, 36)])
def test_no_line_stands_out_further_than_the_rim_allows(rows: int, bow: float) -> None:
    """From 700 pixels on."""
    ends = (
        PictureNode("p", "bus", "p", "a"),
        *(PictureNode(f"{row}", "bus", f"{row}", "a") for row in range(rows)),
    )
    made = placed(Drawing("t", 0, 0, BOXES[:1], ends, (Edge("e", "p", ends[-1].id),)), NARROW)
    x1, _, handle, *_ = made.edges[0].path
    assert handle - x1 == pytest.approx(bow)


def test_a_line_between_two_wires_goes_around_them_like_any_in_one_column() -> None:
    """No topology has one, but a status document may come from anywhere."""
    wires = [PictureNode(name, "wire", name) for name in ("w1", "w2")]
    edges = Edge("1", "x", "w1"), Edge("2", "x", "w2"), Edge("3", "w1", "w2")
    made = placed(Drawing("t", 0, 0, BOXES[:1], (PARTS[3], *wires), edges), WIDE)
    x1, _, one, _, other, _, x2, _ = made.edges[2].path
    assert (x1, one, other, x2) == (810, 850, 850, 810)


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_columns_at_one_place_have_one_side_for_lines(layout: Layout) -> None:
    assert len(set(zip(layout.columns, layout.sides, strict=True))) == len(set(layout.columns))
    assert set(layout.sides) <= {-1, 1}
