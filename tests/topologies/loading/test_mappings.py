"""A setting that is a value or a mapping, in each form, and by gateway."""

from typing import Any

import pytest

from bridges.protocols.lines.protocol import Lines
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads

FILE = """
name: t
gateways: {{gw-a: {{}}, gw-b: {{}}}}
buses: {{plant: {{on: gw-a}}}}
bridges:
  b: {{on: [gw-a, gw-b], join: [{{bus: plant}}, {{uart: /dev/x, protocol: {{lines: {{send: {send}}}}}}}]}}
"""


def sends(send: str) -> list[Any]:
    """Return `send` as it is on both gateways."""
    spec = loads(FILE.format(send=send)).bridges["b"]
    found = [spec.at(gateway)[1].protocol for gateway in ("gw-a", "gw-b")]
    assert all(isinstance(one, Lines) for one in found)
    return [one.send for one in found if isinstance(one, Lines)]


@pytest.mark.parametrize(
    ("send", "expected"),
    [
        ("a/b", [("a", "b")] * 2),
        ("[a, b]", [("a", "b")] * 2),
        (r'{a/b: "X {data}\r\n"}', [{"a/b": "X {data}\r\n"}] * 2),
        ("{gw-a: a, gw-b: b/c}", [("a",), ("b", "c")]),
        (r'{gw-a: {x: "1\n"}, gw-b: b}', [{"x": "1\n"}, ("b",)]),
        (r'{gw-a: "x\n", other: "y\n"}', [{"gw-a": "x\n", "other": "y\n"}] * 2),
        ("null", [None] * 2),
    ],
)
def test_a_value_or_a_mapping(send: str, expected: list[Any]) -> None:
    assert sends(send) == expected


@pytest.mark.parametrize(
    ("send", "words"),
    [
        ("{a//b: x}", "a part between slashes is empty"),
        ("{'#': x}", "no wildcard"),
        ("{a: 7}", "put it in quotes"),
        ("7.5", "put it in quotes"),
        ("{a: '{what}'}", "is no place of a template"),
    ],
)
def test_what_is_wrong_is_said_once(send: str, words: str) -> None:
    with pytest.raises(InvalidTopology) as caught:
        sends(send)
    assert len(caught.value.findings) == 1
    assert words in caught.value.findings[0].text
