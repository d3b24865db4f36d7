"""Temporary directories go with who has them: also those of a process that was killed."""

import os
from pathlib import Path

import pytest

from bus.machine.scratch import Scratch, sweep
from tests.helpers import ROOT

OURS = ("appliance", "bridges", "bus", "capture", "devices", "pipeline", "topologies")
KEPT = ("appliance/demo/play.py",)  # the user's capture, which the demo leaves
_MAKERS = ("TemporaryDirectory(", "mkdtemp(")


def killed(made: Scratch) -> None:
    """Let go of a directory as a process does that is killed."""
    made._end.detach()  # noqa: SLF001
    os.close(made.descriptor)


def here(tmp_path: Path) -> list[str]:
    return sorted(str(path) for path in tmp_path.iterdir())


def test_it_is_there_until_it_is_closed(tmp_path: Path) -> None:
    with Scratch("sail-", str(tmp_path)) as name:
        Path(name, "log").touch()
        assert here(tmp_path) == [name]
        assert Path(name).name.startswith("buscoupler-sail-")
    assert here(tmp_path) == []


def test_the_next_removes_what_the_killed_left_and_nothing_else(tmp_path: Path) -> None:
    used, left = Scratch(place=str(tmp_path)), Scratch(place=str(tmp_path))
    (tmp_path / "buscoupler-old").mkdir()
    killed(left)
    made = Scratch(place=str(tmp_path))
    assert here(tmp_path) == sorted([used.name, made.name, str(tmp_path / "buscoupler-old")])
    used.close()
    made.close()


def test_a_child_that_has_its_descriptor_keeps_it(tmp_path: Path) -> None:
    made = Scratch(place=str(tmp_path))
    child = os.dup(made.descriptor)
    killed(made)
    sweep(tmp_path)
    assert here(tmp_path) == [made.name]
    os.close(child)
    sweep(tmp_path)
    assert here(tmp_path) == []


def test_a_link_and_the_directory_of_another_user_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Scratch(place=str(tmp_path))
    killed(made)
    (tmp_path / "buscoupler-x.locked").symlink_to(made.name)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    sweep(tmp_path)
    assert len(here(tmp_path)) == 2
    monkeypatch.undo()
    sweep(tmp_path)
    assert here(tmp_path) == [str(tmp_path / "buscoupler-x.locked")]


def test_nobody_makes_another_kind() -> None:
    found = [
        str(path.relative_to(ROOT))
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
        if any(word in path.read_text() for word in _MAKERS)
    ]
    assert sorted(found) == sorted([*KEPT, "bus/machine/scratch.py"])
