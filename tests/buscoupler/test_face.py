"""The face: one name to import, and one clear line when a foreign module is in the way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import buscoupler
from buscoupler.packages import PACKAGES
from tests.helpers import ROOT


def python(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in `cwd`, with the tree under test on the path behind that."""
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


@pytest.mark.parametrize("name", buscoupler.__all__)
def test_every_name_of_the_face_is_there(name: str) -> None:
    assert getattr(buscoupler, name)
    assert name in dir(buscoupler)


def test_type_checkers_and_programs_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "buscoupler" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (node.module, name.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == {(room, name) for name, room in buscoupler._ROOM.items()}  # noqa: SLF001


def test_the_face_knows_all_packages() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found - {"tests", "benchmarks", "buscoupler"} == {*PACKAGES}


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Bux'"):
        buscoupler.Bux  # noqa: B018


def test_the_command_runs_as_a_module(tmp_path: Path) -> None:
    done = python("-m", "buscoupler", "tokens", "fridge", cwd=tmp_path)
    assert done.returncode == 0
    assert "fridge" in done.stdout


@pytest.mark.parametrize("foreign", ["bus.py", "bridges/__init__.py", "capture/notes.txt"])
def test_a_foreign_module_that_hides_a_package_is_one_line(tmp_path: Path, foreign: str) -> None:
    path = tmp_path / foreign
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    done = python("-m", "buscoupler", "tokens", "fridge", cwd=tmp_path)
    hidden = path.suffix == ".py"  # a folder without Python in it hides nothing
    assert done.returncode == int(hidden)
    name = foreign.partition("/")[0].removesuffix(".py")
    line = f"buscoupler: {path} hides the package '{name}' of buscoupler: rename that file or folder\n"
    assert done.stderr == (line if hidden else "")


def test_a_program_beside_a_foreign_bus_is_told_its_path(tmp_path: Path) -> None:
    (tmp_path / "bus.py").write_text("")
    (tmp_path / "program.py").write_text("from buscoupler import Bus\n")
    done = python("program.py", cwd=tmp_path)
    assert done.stderr.splitlines()[-1].startswith(
        f"ImportError: {tmp_path / 'bus.py'} hides the package 'bus'"
    )


def test_the_face_loads_no_socket_library_before_it_is_needed(tmp_path: Path) -> None:
    done = python("-c", "import buscoupler, sys; print('pynng' in sys.modules)", cwd=tmp_path)
    assert done.stdout == "False\n"
