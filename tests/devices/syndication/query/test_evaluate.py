"""Which metadata match: operators, lists, missing keys, types; against a naive evaluation; RE2 as engine."""

import re

import pytest
from hypothesis import given

from devices.syndication.query import Value, parse
from devices.syndication.query.evaluate import PATTERN_MEMORY, compiled
from devices.syndication.query.tree import Among, And, Has, Like, Node, Not, Or, plain, text_of
from tests.devices.syndication.query.trees import METADATA, TREES

pytest.importorskip("lark", reason="the extra syndication is not installed")
re2 = pytest.importorskip("re2", reason="the extra syndication is not installed")

FRIDGE: dict[str, Value] = {
    "Room": "410",
    "Floor": 4,
    "Mains": True,
    "Tags": ["zone", "temp", 7, ["deep"]],
    "Empty": [],
    "Nil": None,
    "Map": {"a": 1},
    "Bytes": b"410",
    "Setpoint": 4.0,
    "Broken": "\udc80x",
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Room = '410'",
        "Room != '411'",
        "Missing != '410'",
        "Room like '1'",
        "Room like '^4.*0$'",
        "Broken like 'x$'",
        "Tags like '^zo'",
        "Tags = 'temp'",
        "Tags = 7",
        "['nothing', 'zone'] in Tags",
        "['409', '410'] in Room",
        "[4, 5] in Floor",
        "Floor = 4.0",
        "Setpoint = 4",
        "Mains = true",
        "has Empty and has Nil and has Map",
        "not has Missing",
        "not Missing like 'x'",
        "Tags != 'other'",
        "Map != 1",
        "has Missing or Floor = 4 and not Room = 'x'",
    ],
)
def test_what_matches(text: str) -> None:
    assert parse(text).matches(FRIDGE)
    assert not text or not parse(f"not ({text})").matches(FRIDGE)


@pytest.mark.parametrize(
    "text",
    [
        "Room = '41'",
        "Room = 410",
        "room = '410'",
        "Room != '410'",
        "Missing = '410'",
        "Missing like ''",
        "has Missing",
        "Floor = '4'",
        "Floor like '4'",
        "Floor = true",
        "Mains = 1",
        "[1] in Mains",
        "Mains = 'true'",
        "Tags != 'temp'",
        "Tags = 'deep'",
        "Tags like 'deep'",
        "Tags like '7'",
        "['deep', 'x'] in Tags",
        "[1, 2] in Map",
        "Empty like ''",
        "Empty = ''",
        "Nil = ''",
        "Map = 1",
        "Bytes = '410'",
        "Bytes like '410'",
        "(has Room or has Floor) and has Missing",
    ],
)
def test_what_does_not_match(text: str) -> None:
    assert not parse(text).matches(FRIDGE)
    assert parse(f"not ({text})").matches(FRIDGE)


def same(a: Value, b: Value) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def naive(node: Node, metadata: dict[str, Value]) -> bool:
    """Evaluate by the words of docs/query.md, with the patterns in Python's engine: `\\Z` for `$`."""
    found = [metadata[node.key]] if isinstance(node, Has | Among | Like) and node.key in metadata else []
    values = [value for item in found for value in (item if isinstance(item, list) else [item])]
    match node:
        case Has():
            return bool(found)
        case Among(_, wanted):
            return any(same(value, other) for value in values for other in wanted)
        case Like(_, pattern):
            pattern = pattern.replace("$", r"\Z")
            return any(isinstance(value, str) and re.search(pattern, value, re.ASCII) for value in values)
        case Not(part):
            return not naive(part, metadata)
        case And(parts):
            return all(naive(part, metadata) for part in parts)
        case Or(parts):
            return any(naive(part, metadata) for part in parts)


@given(TREES, METADATA)
def test_evaluation_is_as_the_naive_one(tree: Node, metadata: dict[str, Value]) -> None:
    assert parse(text_of(tree)).matches(metadata) is naive(tree, metadata)


def test_metadata_without_the_keys_of_a_query_do_not_matter() -> None:
    query = parse("Room = '410' or not has Type")
    assert query.matches({"Room": "410"}) == query.matches(FRIDGE)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "([a-z]+)*[0-9]"])
def test_patterns_that_explode_in_backtracking_engines_run_in_re2(pattern: str) -> None:
    engine = compiled(Like("Name", pattern))
    assert isinstance(engine, re2._Regexp)  # noqa: SLF001 - it has no public name
    assert engine.options.max_mem == PATTERN_MEMORY
    assert engine.programsize < 30
    query = parse(f"Name like '{pattern}'")
    assert not query.matches({"Name": "a" * 100_000 + "!"})


@pytest.mark.parametrize("number", [-(2.0**63), 2.0**63, 2.0**64 - 4096, -7.0])
def test_a_float_that_an_integer_on_the_wire_equals_is_compared_as_that(number: float) -> None:
    assert type(plain(number)) is int
    assert plain(number) == number


@pytest.mark.parametrize("number", [-(2.0**63) - 4096, 2.0**64, 0.5, -1e300])
def test_a_float_that_no_integer_on_the_wire_equals_stays_one(number: float) -> None:
    assert type(plain(number)) is float
