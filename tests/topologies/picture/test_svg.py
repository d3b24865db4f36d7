"""The SVG of a picture: the forms of nodes, and texts that are too long for them."""

import re

import pytest

from topologies.picture.layout import Box, Drawing, Edge, PictureNode
from topologies.picture.marks import Mark
from topologies.picture.svg import shorten, svg


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abcde", "abcde"),
        ("abcdef", "ab…ef"),
        ("abcdefgh", "ab…gh"),
    ],
)
def test_the_middle_of_a_text_of_more_than_five_characters_is_left_out(text: str, shown: str) -> None:
    assert shorten(text, 5) == shown


def test_of_an_even_number_of_characters_the_beginning_has_more() -> None:
    assert shorten("abcdefgh", 6) == "abc…gh"


@pytest.mark.parametrize(
    ("kind", "corner"),
    [("bus", 18), ("bridge", 4), ("device", 10), ("broker", 10), ("wire", 0), ("of another version", 6)],
)
def test_each_kind_of_node_has_its_corners(kind: str, corner: int) -> None:
    shown = svg(Drawing("t", 10, 10, (), (PictureNode("n", kind, "n"),), ()))
    assert re.findall('<rect [^>]* rx="([^"]*)"', shown) == [str(corner)]


def test_the_head_of_a_gateway_has_a_word_and_its_title_the_fault() -> None:
    drawing = Drawing("t", 10, 10, (Box("gw", "10.0.0.1", 0, 0, 250, 90),), (), ())
    mark = Mark(
        "bad", "this gateway", fault="trouble: axis: a fault that is longer than the box of a gateway"
    )
    shown = svg(drawing, {"gateway gw": mark})
    assert re.findall('class="live end"[^>]*>([^<]*)<', shown) == ["▲ this gateway"]
    assert f"<title>gateway gw: {mark.text}</title>" in shown


def test_a_line_without_a_place_for_its_label_has_it_in_its_middle() -> None:
    curve = (0.0, 10.0, 80.0, 30.0, 80.0, 70.0, 160.0, 90.0)
    shown = svg(Drawing("t", 200, 100, (), (), (Edge("e", "a", "b", path=curve),)))
    (place,) = re.findall('<text y="([^"]*)"><tspan class="line" x="([^"]*)">', shown)
    assert place == ("47", "80")  # of two lines: 50 + 4 - 7
