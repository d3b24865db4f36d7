"""The examples of docs/query.md are true."""

import re

import pytest

from devices.syndication.query import QueryError, Value, parse, selection
from tests.helpers import ROOT

pytest.importorskip("lark", reason="the extra syndication is not installed")
pytest.importorskip("re2", reason="the extra syndication is not installed")

PAGE = (ROOT / "docs/query.md").read_text()
BLOCKS = [
    block for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "  " in block
]
"""The tables of queries; other blocks are what commands print."""
MATCHES, ERRORS = ([re.split(r"  +", line, maxsplit=1) for line in block.splitlines()] for block in BLOCKS)
PRODUCERS: dict[str, dict[str, Value]] = {
    "a": {
        "Room": "410",
        "Type": "Thermostat",
        "Metadata/Location/Building": "Soda Hall",
        "Tags": ["zone", "temp"],
        "Floor": 4,
    },
    "b": {"Room": "410", "Type": "Camera", "Metadata/Location/Building": "Soda Hall", "Floor": 4},
    "c": {"Room": "12", "Type": "Thermostat", "Metadata/Location/Building": "Cory Hall", "Tags": ["temp"]},
}


@pytest.mark.parametrize(("text", "names"), MATCHES)
def test_the_producers_of_each_example(text: str, names: str) -> None:
    found = [name for name, metadata in PRODUCERS.items() if parse(text).matches(metadata)]
    assert ", ".join(found) == names.partition(" (")[0]


@pytest.mark.parametrize(("text", "what"), ERRORS)
def test_the_errors(text: str, what: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == what


def test_the_program() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    *statements, matches, text, keys = program.splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(statements), scope)
    for line in (matches, text, keys):
        expression, _, shown = line.partition("  # ")
        assert str(eval(expression, scope)) == shown


def test_the_rooms_with_thermostats() -> None:
    (text,) = re.findall(r"`(select distinct [^`]*\")`", PAGE)
    asked = selection(text)
    rooms = {str(metadata[asked.key]) for metadata in PRODUCERS.values() if asked.query.matches(metadata)}
    assert rooms == {"410", "12"}
