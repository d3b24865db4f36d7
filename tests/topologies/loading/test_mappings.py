"""A setting that is a value or a mapping, in each form, and by gateway."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from bridges.protocols.lines.protocol import Lines
from bus.schema import Record
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.loading.mappings import holder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Record):
    """A record of which another one has several."""

    depth: Annotated[int, "how deep it is"] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Record):
    """A record with others."""

    one: Annotated[Inner | None, "one"] = None
    some: Annotated[tuple[Inner, ...], "some"] = ()
    width: Annotated[int, "how wide it is"] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Record):
    """A record with several others only."""

    some: Annotated[tuple[Inner, ...], "some"] = ()


def test_a_key_that_was_written_a_level_too_high_is_found_below() -> None:
    assert [holder_of("depth", cls, ()) for cls in (Outer, Several, Inner)] == ["one", "some", ""]


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
