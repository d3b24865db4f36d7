"""The sizes of the node in C stay below their bounds, and what tells so."""

import re
import shutil
from pathlib import Path

import pytest

from benchmarks.cnode import (
    CORES,
    DEVIATIONS,
    FLASH_MAX,
    PARTS,
    RAM_MAX,
    Core,
    Size,
    checked,
    deepest,
    faults,
    frames,
    measured,
    table,
)
from benchmarks.command import DOCS

BOUNDED = [part for part in PARTS if any(name == part.name for _, name in FLASH_MAX)]


@pytest.mark.parametrize("core", CORES, ids=[core.name for core in CORES])
def test_no_size_is_above_its_bound(core: Core) -> None:
    if shutil.which(f"{core.prefix}-gcc") is None:
        pytest.skip(f"Debian package gcc-{core.prefix} is missing")
    parts = [part for part in BOUNDED if (core.name, part.name) in FLASH_MAX]
    assert faults(list(measured([core], parts))) == []


def test_a_size_above_its_bound_is_a_fault() -> None:
    core, part = CORES[0], PARTS[0]
    key = core.name, part.name
    sizes = [Size(core, part, FLASH_MAX[key] + extra, RAM_MAX[key]) for extra in (0, 1)]
    assert faults(sizes) == ["Cortex-M0, UART: 1537 B of flash, at most 1536"]
    assert table(sizes[:1]).endswith("| Cortex-M0 | UART | 1536 of 1536 | 300 of 300 |")


def test_the_deepest_stack_is_that_of_the_costliest_chain_of_calls() -> None:
    own = frames(
        "node.c:1:6:feed\t16\tstatic\nnode.c:2:6:hear.part.0\t8\tstatic\nnode.c:9:1:end\t24\tstatic\n"
    )
    assert own == {"feed": 16, "hear": 8, "end": 24}
    graph = {"feed": ["hear", "inlined"], "inlined": ["end", "elsewhere"]}
    assert (deepest(own, graph, 0), deepest(own, graph, 2)) == (40, 44)


def test_a_fault_and_a_broken_rule_are_told_and_a_deviation_is_not(tmp_path: Path) -> None:
    if shutil.which("cppcheck") is None:
        pytest.skip("Debian package cppcheck is missing")
    source = tmp_path / "bad.c"
    source.write_text("int f(int n) { int a[3] = {0, 0, 0}; if (n) { return 1; } return a[5]; }\n")
    told = checked(source)
    assert any(line.startswith("cppcheck: error arrayIndexOutOfBounds: ") for line in told)
    assert "MISRA C:2012, rule 8.4: not among the deviations" in told
    assert [line for line in told if "rule 15.5:" in line or "misra" in line] == []


def test_the_page_names_the_deviations_and_has_the_rows_of_the_table() -> None:
    page = (DOCS / "microcontroller.md").read_text()
    found = re.search(r"mandatory rule: ([\d. ]+)\.$", page, re.MULTILINE)
    assert found is not None
    assert set(found[1].split()) == DEVIATIONS
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| \d+(?: of \d+)? \| \d+(?: of \d+)? \|$", page, re.MULTILINE)
    assert rows == [(core.name, part.name) for core in CORES for part in PARTS]
