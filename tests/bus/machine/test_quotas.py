"""What control groups allow a process: the least of those from its own to the root."""

import os
from math import inf
from pathlib import Path

import pytest

from bus.machine.quotas import memory_allowed_bytes, processors_allowed

OWN = "1:cpu:/else\n0::/system.slice/buscoupler.service\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "system.slice/buscoupler.service").mkdir(parents=True)
    (tmp_path / "own").write_text(OWN)
    return tmp_path


@pytest.mark.parametrize("group", ["", "system.slice", "system.slice/buscoupler.service"])
def test_each_group_above_a_process_limits_it(root: Path, group: str) -> None:
    (root / "cpu.max").write_text("400000 100000\n")
    (root / "memory.max").write_text("max\n")
    (root / group / "cpu.max").write_text("150000 100000\n")
    (root / group / "memory.max").write_text("1048576\n")
    assert processors_allowed(root, root / "own") == 1.5
    assert memory_allowed_bytes(root, root / "own") == 1048576


@pytest.mark.parametrize("text", [None, "max 100000\n", "max\n", ""])
def test_without_a_limit_all_is_allowed(root: Path, text: str | None) -> None:
    for name in ("cpu.max", "memory.max") if text is not None else ():
        (root / name).write_text(text or "")
    assert processors_allowed(root, root / "own") == inf
    assert memory_allowed_bytes(root, root / "none") == inf


def test_the_name_of_a_group_need_be_no_text(root: Path) -> None:
    group = root / os.fsdecode(b"caf\xe9")
    group.mkdir()
    (group / "memory.max").write_text("4096\n")
    (root / "own").write_bytes(b"0::/caf\xe9\n")
    assert memory_allowed_bytes(root, root / "own") == 4096
