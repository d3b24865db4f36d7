"""Docstrings of the product: each names its subject, and that of a function says what the function does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, modules

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


def documented(package: str) -> Iterator[tuple[str, Documented, str]]:
    """Yield the place, the node and the docstring of each module, class and function; "" if it has none."""
    for path in modules(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Documented):
                line = getattr(node, "lineno", 1)
                yield f"{path.relative_to(ROOT)}:{line}", node, ast.get_docstring(node) or ""


def is_value(node: Documented) -> bool:
    """Return whether a function is read like an attribute, so that its docstring names what it is."""
    return not isinstance(node, ast.Module) and any(
        ast.unparse(mark).endswith(("property", "property()")) for mark in node.decorator_list
    )


def verbless(node: Documented, text: str) -> bool:
    """Return whether the docstring of a function begins with something else than an imperative."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_value(node):
        return False
    return bool(NO_VERB.match(text)) and text.split()[0] not in VERBS


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_docstring_names_its_subject(package: str) -> None:
    assert [f"{at}: {text[:60]}" for at, _, text in documented(package) if NO_SUBJECT.match(text)] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_function_s_docstring_begins_with_an_imperative(package: str) -> None:
    assert [f"{at}: {text[:60]}" for at, node, text in documented(package) if verbless(node, text)] == []


def public(tree: ast.Module, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of public classes and functions of a module, with their docstrings."""
    face = FACES.get(str(path.parent.relative_to(ROOT)), set[str]())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name[0] != "_" and node.name not in face:
            yield f"{path.relative_to(ROOT)}: {node.name}", ast.get_docstring(node) or ""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_what_is_public_has_a_docstring(package: str) -> None:
    found = [one for path in modules(package) for one in public(ast.parse(path.read_text()), path)]
    assert [name for name, text in found if not text] == []


def test_what_has_no_subject_and_no_verb_is_seen() -> None:
    texts = ("What a ledger counts.", "One that waits.", "It is closed.", "How to read it.")
    assert all(map(NO_SUBJECT.match, texts))
    assert not any(map(NO_SUBJECT.match, ("One message.", "Whether it waits.", "Items of a wire.")))
    (function,) = ast.parse("def f() -> None: ...").body
    assert isinstance(function, ast.FunctionDef)
    bad = ("Returns a frame.", "Packed frames.", "Sending of a frame.", "The frame.", "Frames, packed.")
    assert all(verbless(function, text) for text in bad)
    assert not any(verbless(function, text) for text in ("Return a frame.", "Pass it on.", "Feed a decoder."))
