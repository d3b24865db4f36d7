"""Patterns in brackets, at every key of the schema that takes one: what is advised is read."""

import re

import pytest

from tests.topologies.places import EVERY, Place
from tests.topologies.support import said
from topologies.loading.brackets import whole_in

NAMES = [place for place in EVERY if any("a name or a number" in str(one) for one in place.markers)]
ADVICE = re.compile(r"error: (\S+)\[0\]: .*: write (\S+) in place of the list")


def test_the_keys_with_patterns_are_found() -> None:
    known = " ".join(place.before for place in NAMES)
    for key in ("pattern", "allow", "send", "receive", "root", "prefix", "rename", "opaque", "strip"):
        assert f"{key}: " in known, key
    assert len(NAMES) >= 50
    assert all(place.before.endswith("[") and place.behind.startswith("]") for place in NAMES)


@pytest.mark.parametrize("given", ["a/b", "'a/b'", "[a, b]", "a/b, c"])
def test_what_is_advised_for_a_pattern_in_a_list_of_names_is_right_at_each_key(given: str) -> None:
    for place in NAMES:
        text = said(place.before + given + place.behind)
        found = ADVICE.search(text)
        assert found, (place.before, text)
        path, word = found.groups()
        assert word == ("a/b/c" if "c" in given else "a/b")
        again, plain = (_about(path, said(_without(place, one))) for one in (word, "a"))
        assert again == plain, place.before


def _about(path: str, text: str) -> list[str]:
    """Return what is said of a value at a path, as of any: the key of a mapping `x` is not always one."""
    return [
        line.partition("error: ")[2]
        for line in text.splitlines()
        if f" {path}:" in line or f" {path}[" in line
    ]


def _without(place: Place, word: str) -> str:
    """Return the text with a word in place of the list of names."""
    return place.before[:-1] + word + place.behind[1:]


def test_nothing_is_advised_where_nobody_knows_what_is_meant() -> None:
    wanted = "the list is one pattern, and this is a list in it"
    text = "name: t\ngateways: {gw: {}}\nbridges: {b: {on: gw, pattern: [[a], [b]]}}"
    assert wanted in [line.partition("[0]: ")[2] for line in said(text).splitlines()]
    assert whole_in(()) is None


def test_a_slash_alone_is_the_pattern_that_matches_all() -> None:
    text = "name: t\ngateways: {gw: {}}\nbridges: {b: {on: gw, pattern: [/]}}"
    assert "write / in place of the list" in said(text)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("'a: b/c'", ': write "a: b/c" in place of the list'),
        ("'a, b/#c'", ': write "a, b/#c" in place of the list'),
        ("'°/c'", ': write "°/c" in place of the list'),
        ("caf\u00e9/t 1", ": write caf\u00e9/t 1 in place of the list"),
        (64 * "a" + "/b", ""),
    ],
)
def test_what_is_advised_is_whole_and_read_as_it_is_meant(given: str, told: str) -> None:
    """The colon made it a mapping, and of a long one the end was cut off."""
    text = "name: t\ngateways: {gw: {}}\nbridges: {b: {on: gw, pattern: [%s]}}"
    (line,) = (line for line in said(text % given).splitlines() if "is a pattern" in line)
    assert line.partition("the names of one")[2] == told
