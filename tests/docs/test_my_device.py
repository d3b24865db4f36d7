"""Each row of the page about devices is a side that `check` accepts, and gives what the row says."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from tests.helpers import ROOT
from topologies.checks.checker import check
from topologies.loading.loader import load
from topologies.wiring.filters import begins, tokens

PAGE = ROOT / "docs" / "my-device.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and "`" in line
]
SIDES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
"""The sides that the page shows: the bus, and that of the first row."""
TOPOLOGY = """
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: gw, listen: "tcp://127.0.0.1:25902"}}}}
bridges:
  devices:
    on: gw
{sides}"""


def code(cell: str) -> str:
    """Return the first piece of code in a cell."""
    found = re.search(r"`([^`]+)`", cell)
    assert found, cell
    return found[1]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_a_side_and_gives_its_pattern(row: list[str], tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "engine" / "engine.dbc", tmp_path)
    file = tmp_path / "t.yaml"
    shown = SIDES.replace(code(ROWS[0][1]), code(row[1])).replace(code(ROWS[0][2]), code(row[2]))
    assert code(row[1]) in shown
    assert code(row[2]) in shown
    file.write_text(TOPOLOGY.format(sides=textwrap.indent(shown, " " * 4)))
    topology = load(file)
    assert [finding for finding in check(topology) if finding.level == "error"] == []
    side = topology.bridges["devices"].at("gw")[1]
    assert side.way is not None
    pattern = tokens(tuple(code(row[3]).split("/")))
    assert any(begins(tokens(start), pattern) for start in side.way.inward or ())
