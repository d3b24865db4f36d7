"""Lines of the log and reasons on the page for troubleshooting are those of the program."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from bus.reasons import DROPPED, REJECTED
from tests.helpers import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
SYMPTOMS = PAGE.read_text().partition("## What the log says\n")[0]
SAID = re.findall(r"(?:says|that of a gateway|^##) `([^`]+ [^`]+)`", SYMPTOMS, re.MULTILINE)
COUNTED = re.findall(r"`(?:dropped|rejected) N ([a-z ]+)`", SYMPTOMS)
LOGGED = re.findall(r"^\| `(.+?)` \|", PAGE.read_text().partition("## What the log says\n")[2], re.MULTILINE)

WORD = re.compile(r"\b[a-z]{3,}\b")


@cache
def texts() -> str:
    """Return all texts of the program's code, each on a line, with `...` for what is filled in.

    Modules that have not all words of any line are left out: to parse them takes seconds.
    """
    packages = ("buscoupler", "bus", "bridges", "devices", "appliance")
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    sought = [set(WORD.findall(line)) for line in (*LOGGED, *SAID)]
    likely = (
        text for text in map(Path.read_text, paths) if any(map(set(WORD.findall(text)).issuperset, sought))
    )
    return "\n".join(text for code in likely for text in _texts(ast.parse(code)))


def _texts(tree: ast.AST) -> list[str]:
    every = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Expr | ast.Constant)]
    texts = [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        for node in every
        if isinstance(node, ast.JoinedStr)
    ]
    documentation = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    plain = (
        node.value for node in every
        if isinstance(node, ast.Constant) and id(node) not in documentation
    )  # fmt: skip
    return [*texts, *(re.sub(r"%[sdg]", "...", text) for text in plain if isinstance(text, str))]


@pytest.mark.parametrize("line", LOGGED)
def test_each_line_of_the_log_is_in_the_code(line: str) -> None:
    assert line.removeprefix("... ") in texts()


@pytest.mark.parametrize("line", SAID)
def test_each_line_that_a_symptom_quotes_is_in_the_code(line: str) -> None:
    words = re.split(r"\.\.\.|\b[A-Z]{4,}(?::PORT)?\b|'bus'", line)
    assert all(part.strip(" :") in texts() for part in words), line


@pytest.mark.parametrize("reason", COUNTED)
def test_each_reason_that_a_symptom_names_is_one(reason: str) -> None:
    assert reason in {one.word for one in (*DROPPED, *REJECTED)}


def test_the_page_explains_lines_of_the_log() -> None:
    assert len(LOGGED) > 10
