"""Topologies and pieces of topologies on pages are such as `check` accepts."""

import re
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from tests.helpers import ROOT
from tests.helpers.shown import PAGES, blocks
from topologies.checks.checker import check
from topologies.checks.exposure import find_exposed
from topologies.findings import Finding, InvalidTopology
from topologies.loading.loader import loads
from topologies.wiring.segments import wired

FOREIGN = re.compile(r"^scrape_configs:|\b(?:unicast|mqtt|mavlink):", re.MULTILINE)  # and examples/
SNIPPETS = [
    pytest.param(block.text, id=f"{page.relative_to(ROOT)}-{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.kind == "yaml" and not FOREIGN.search(block.text)
]
FRAME = """
name: t
gateways: {gw: {}, gw-a: {address: 10.0.0.11}, gw-b: {address: 10.0.0.12}, b: {}, gw-hall: {}, gw-office: {}}
buses: {plant: {on: gw-a}, hall: {on: gw}, office: {on: gw-b}, hall-a: {on: gw-a}, hall-b: {on: gw-b}}
bridges: {fridge: {on: gw-a, join: [{bus: plant}, {can: can0}]}}
"""
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


@pytest.mark.parametrize("text", [one for one in SNIPPETS if not whole(str(one.values[0]))])
def test_each_piece_fits_into_a_topology(text: str) -> None:
    frame = len(framed(text).splitlines()) - len(text.splitlines())
    assert [fault for fault in refusals(framed(text)) if fault.line > frame] == []


def refusals(text: str) -> list[Finding]:
    """Return what the loader refuses in a topology."""
    try:
        loads(text)
    except InvalidTopology as error:
        return list(error.findings)
    return []


def framed(piece: str) -> str:
    """Return a topology with a piece of one at its end, and before it what the pieces on pages name."""
    if piece.startswith("join:"):
        piece = "bridges:\n  one:\n    on: gw-a\n" + indent(piece, "    ")
    keys = re.findall(r"^\w+(?=:)", piece, re.MULTILINE)
    rest = [line for line in FRAME.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*rest, piece.replace("[..., ", '["tcp://0.0.0.0:5555", ')])


def findings(text: str) -> list[Finding]:
    topology = loads(text)
    return [*check(topology), *find_exposed(wired(topology))]


def sections(page: Path) -> dict[str, str]:
    _, *parts = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
def test_who_comes_from_another_program_has_a_table_and_a_topology_without_a_warning(program: str) -> None:
    text = sections(COMING)[program]
    assert "| there | here |" in text
    (topology,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert {found.level for found in findings(topology)} <= {"note"}
