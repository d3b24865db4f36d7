"""What the pages for troubleshooting and operations, and the README, show is what the program says."""

import ast
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.shown import Block, Clone, blocks, end_of

PAGE, README = ROOT / "docs" / "troubleshooting.md", ROOT / "README.md"
OPERATIONS = ROOT / "docs" / "operations.md"
PAIRS = [
    (typed.text, shown.text)
    for page in (PAGE, OPERATIONS)
    for typed, shown in pairwise(blocks(page))
    if (typed.kind, shown.kind) == ("sh", "text")
]
LOGGED = re.findall(r"^\| `(.+?)` \|", PAGE.read_text().partition("## What the log says\n")[2], re.MULTILINE)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def typed(clone: Clone, text: str) -> str:
    """Run the lines of a block in a shell. Return all that appeared."""
    settings = clone.environment | {"COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-c", text], cwd=clone.home, env=settings, text=True, timeout=50,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(("words", "expected"), PAIRS, ids=[words.splitlines()[0] for words, _ in PAIRS])
def test_each_message_is_what_the_program_says(clone: Clone, words: str, expected: str) -> None:
    pytest.importorskip("serial")
    said = typed(clone, clone.here(words))
    assert end_of(clone.here(expected), said) is not None, said


def shown(beginning: str) -> Block:
    (block,) = [block for block in blocks(README) if block.text.startswith(beginning)]
    return block


def test_the_picture_of_the_demo_is_what_it_prints(clone: Clone) -> None:
    pytest.importorskip("rich")
    said = typed(clone, "buscoupler demo --seconds 2 --rate 200 --capture capture")
    assert end_of(shown("Frames received").text, said) is not None, said


def test_the_way_of_a_frame_is_what_explain_says(clone: Clone) -> None:
    said = typed(clone, "buscoupler explain fridge/temp topologies/field.yaml --from uart")
    assert clone.here(shown("fridge/temp from").text) == said


def test_the_picture_of_a_topology_is_what_show_draws(clone: Clone) -> None:
    drawn = typed(clone, "buscoupler show topologies/field.yaml --format mermaid")
    assert shown("flowchart").text.strip() == drawn.strip()
    checked, *_ = shown("topologies/field.yaml: ok").text.partition("field: gw runs")
    words = "buscoupler check topologies/field.yaml; buscoupler show topologies/field.yaml"
    assert clone.here(checked).strip() == typed(clone, words).strip()


@cache
def texts() -> str:
    """Return all texts of the program's code, each on a line, with `...` for what is filled in."""
    packages = ("bus", "bridges", "devices", "appliance")
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return "\n".join(text for path in paths for text in _texts(ast.parse(path.read_text())))


def _texts(tree: ast.AST) -> list[str]:
    texts = [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    ]
    plain = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [*texts, *(re.sub(r"%[sdg]", "...", text) for text in plain if isinstance(text, str))]


@pytest.mark.parametrize("line", LOGGED)
def test_each_line_of_the_log_is_in_the_code(line: str) -> None:
    assert line.removeprefix("... ") in texts()


def test_the_page_explains_lines_of_the_log() -> None:
    assert len(LOGGED) > 10
