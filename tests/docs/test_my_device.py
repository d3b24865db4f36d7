"""Each row of the page about devices is a side that `check` accepts, and gives what the row says."""

import re
import shutil
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
TOPOLOGY = """
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: gw, listen: "tcp://127.0.0.1:25902"}}}}
bridges:
  devices:
    on: gw
    join:
      - bus: plant
      - {medium}
        protocol: {{{protocol}}}
"""


def code(cell: str) -> str:
    """Return the first piece of code in a cell."""
    found = re.search(r"`([^`]+)`", cell)
    assert found, cell
    return found[1]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_a_side_and_gives_its_pattern(row: list[str], tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "engine" / "engine.dbc", tmp_path)
    file = tmp_path / "t.yaml"
    file.write_text(TOPOLOGY.format(medium=code(row[1]), protocol=code(row[2])))
    topology = load(file)
    assert [finding for finding in check(topology) if finding.level == "error"] == []
    side = topology.bridges["devices"].at("gw")[1]
    assert side.way is not None
    pattern = tokens(tuple(code(row[3]).split("/")))
    assert any(begins(tokens(start), pattern) for start in side.way.inward or ())
