"""Topologies and pieces of topologies on pages are such as `check` accepts."""

import re
from pathlib import Path

import pytest
import yaml

from tests.helpers import ROOT
from topologies.checker import check
from topologies.exposure import find_exposed
from topologies.findings import Finding
from topologies.loader import loads

YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, text in enumerate(YAML.findall(page.read_text()))
]
COMING = ROOT / "docs/coming-from.md"
PROGRAMS = ("ser2net", "cannelloni", "mosquitto bridges", "mavlink-router")


def whole(text: str) -> bool:
    return {"name", "gateways"} <= (yaml.safe_load(text) or {}).keys()


@pytest.mark.parametrize("text", SNIPPETS)
def test_each_is_yaml(text: str) -> None:
    assert yaml.safe_load(text)


@pytest.mark.parametrize("text", [snippet for snippet in SNIPPETS if whole(str(snippet.values[0]))])
def test_check_accepts_each_whole_topology(text: str) -> None:
    assert [found for found in findings(text) if found.level == "error"] == []


def findings(text: str) -> list[Finding]:
    topology = loads(text)
    return [*check(topology), *find_exposed(topology)]


def sections(page: Path) -> dict[str, str]:
    _, *parts = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
def test_who_comes_from_another_program_has_a_table_and_a_topology_without_a_warning(program: str) -> None:
    text = sections(COMING)[program]
    assert "| there | here |" in text
    (topology,) = YAML.findall(text)
    assert {found.level for found in findings(topology)} <= {"note"}
