"""Docstrings of the product: each names its subject, and that of a function says what the function does."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, modules, statements

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NO_SUBJECT = re.compile(
    r"(What|Who|Whom|Whose|How|Which|When|Where|Why|That|Those|These|This|It|Its|They|Them|He|She"
    r"|Whoever|Whatever|One (that|which|who|of))\b"
)
NO_VERB = re.compile(
    r"(\w*[^s\W]s|\w+ed|\w+ing|A|An|The|All|Each|Every|No|Not|Nothing|Nobody|Only|Also|As|If|In|On|For|At|With"
    r"|Without|By|Of|To)\b"
)
VERBS = {"Bring", "Embed", "Feed", "Need", "Send", "String"}
"""Imperatives that look like other forms."""
FACES = {"appliance/commands": {"arguments", "run"}, "pipeline/jobs": {"arguments", "process", "tables"}}
"""Functions that the modules of a folder have in common: the record that takes them says what they do."""


class Text(NamedTuple):
    """A docstring, "" for none: where it is, and what it is of."""

    at: str
    text: str
    is_public: bool
    needs_verb: bool


@cache
def documented(package: str) -> tuple[Text, ...]:
    """Return the docstring of each module, class and function of a package. Each module is read once."""
    return tuple(found for path in modules(package) for found in documented_in(path))


def documented_in(path: Path) -> Iterator[Text]:
    tree, place = ast.parse(path.read_text()), path.relative_to(ROOT)
    public = {id(node) for node in tree.body if is_public(node, str(place.parent))}
    for node in (tree, *statements(tree)):
        if isinstance(node, Documented):
            line, text = getattr(node, "lineno", 1), ast.get_docstring(node) or ""
            yield Text(f"{place}:{line}", text, id(node) in public, needs_verb(node))


def is_public(node: ast.stmt, folder: str) -> bool:
    """Return whether a statement of a module makes a class or a function that others use."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node.name[0] != "_" and node.name not in FACES.get(folder, ())


def needs_verb(node: Documented) -> bool:
    """Return whether it is a function, and not one that is read like an attribute."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
        ast.unparse(mark).endswith(("property", "property()")) for mark in node.decorator_list
    )


def is_verbless(found: Text) -> bool:
    """Return whether the docstring of a function begins with something else than an imperative."""
    return found.needs_verb and bool(NO_VERB.match(found.text)) and found.text.split()[0] not in VERBS


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_docstring_names_its_subject(package: str) -> None:
    wrong = [found for found in documented(package) if NO_SUBJECT.match(found.text)]
    assert [f"{found.at}: {found.text[:60]}" for found in wrong] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_function_s_docstring_begins_with_an_imperative(package: str) -> None:
    assert [f"{one.at}: {one.text[:60]}" for one in documented(package) if is_verbless(one)] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_what_is_public_has_a_docstring(package: str) -> None:
    assert [found.at for found in documented(package) if found.is_public and not found.text] == []


def test_what_has_no_subject_and_no_verb_is_seen() -> None:
    texts = ("What a ledger counts.", "One that waits.", "It is closed.", "How to read it.")
    assert all(map(NO_SUBJECT.match, texts))
    assert not any(map(NO_SUBJECT.match, ("One message.", "Whether it waits.", "Items of a wire.")))
    (function,) = ast.parse("def f() -> None: ...").body
    assert isinstance(function, ast.FunctionDef)
    bad = ("Returns a frame.", "Packed frames.", "Sending of a frame.", "The frame.", "Frames, packed.")
    assert all(is_verbless(Text("", text, True, needs_verb(function))) for text in bad)
    assert not any(
        is_verbless(Text("", text, True, needs_verb(function)))
        for text in ("Return a frame.", "Pass it on.", "Feed a decoder.")
    )
