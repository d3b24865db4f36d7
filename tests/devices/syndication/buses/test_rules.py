"""The records of rules: what they refuse. Reading of files is tested with the whole record."""

from typing import Any

import pytest

from devices.syndication.buses.rules import ProducerRule, QueryRule


def producers(**settings: Any) -> ProducerRule:
    return ProducerRule(bus="hall", pattern=("a",), **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"codec": "struct"}, "codec: struct has a format"),
        ({"codec": "json", "format": "<f"}, "no other codec has one"),
        ({"codec": "struct", "format": "f"}, "has no byte order"),
        ({"codec": "struct", "format": "=f"}, "has no byte order"),
        ({"codec": "struct", "format": ""}, "has no byte order"),
        ({"codec": "struct", "format": "<y"}, "is refused: bad char"),
        ({"codec": "struct", "format": "<é"}, "is refused"),
        ({"codec": "struct", "format": "<2049B"}, "has 2049 bytes"),
        ({"codec": "struct", "format": "<99999999999f"}, "bytes: a frame has"),
        ({"codec": "struct", "format": f"<{'9' * 60}f"}, "is refused"),
        ({"codec": "struct", "format": "<4x"}, "has no field"),
        ({"codec": "struct", "format": "<0f"}, "has 0 bytes"),
        ({"metadata": {"Serial": 2**64}}, "64 bits"),
        ({"metadata": {"Serials": (1, -(2**63) - 1)}}, "64 bits"),
        ({"metadata": {"Text": "é" * 512}}, "metadata: up to 1037 bytes"),
        ({"metadata": {"Numbers": (1,) * 128}}, "metadata: up to 1165 bytes"),
        ({"metadata": {"Texts": ("",) * 512}}, "metadata: up to 1547 bytes"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        producers(**settings)


def test_a_rule_that_can_work_is_not() -> None:
    producers(codec="struct", format="<2048B")
    producers(metadata={"Serial": 2**64 - 1, "Low": -(2**63), "On": True, "Tags": ("a", 1.5)})


def test_a_wrong_query_is_refused_with_its_position() -> None:
    pytest.importorskip("lark")
    with pytest.raises(ValueError, match="query: character 6: expected"):
        QueryRule(query="Room < 4", bus="hall", pattern=("found",))


@pytest.mark.parametrize("length", [0, 255])
def test_the_pattern_of_a_query_leaves_room_for_the_id(length: int) -> None:
    with pytest.raises(ValueError, match="the pattern of a query has 1 to 254 names"):
        QueryRule(query="", bus="hall", pattern=(1,) * length)
    QueryRule(query="", bus="hall", pattern=(1,) * 254)


def test_metadata_of_exactly_the_bound_are_taken() -> None:
    """3 bytes around each key and text, and 3 more for each pair."""
    assert producers(metadata={"k": "x" * 1014}).metadata
    with pytest.raises(ValueError, match="metadata: up to 1025 bytes of MessagePack; they may have 1024"):
        producers(metadata={"k": "x" * 1015})
