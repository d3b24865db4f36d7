"""Words that once named many things: each is the name of one class at most, and others say whose they are."""

import ast
from collections import defaultdict

import pytest

from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, modules

WORDS = {
    "Door",
    "End",
    "Heard",
    "Mark",
    "Node",
    "Outlet",
    "Place",
    "Seat",
    "Sight",
    "Standing",
    "Told",
    "Way",
}


def named(text: str) -> set[str]:
    """Return the names that a module gives to classes and types at its top, but for variables of types."""
    found = set[str]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def test_a_word_that_named_many_things_names_one_class_at_most() -> None:
    owners = defaultdict[str, list[str]](list)
    for path in (path for package in MAY_IMPORT for path in modules(package)):
        text = path.read_text()
        if any(word in text for word in WORDS):
            for word in named(text) & WORDS:
                owners[word].append(str(path.relative_to(ROOT)))
    assert {word: places for word, places in owners.items() if len(places) > 1} == {}


@pytest.mark.parametrize("text", ["class Place: ...", "Place = tuple[int, str]"])
def test_a_class_and_a_type_are_seen(text: str) -> None:
    assert named(text) == {"Place"}
