"""The wheel and the source distribution, built from the files of the repository: what is in them."""

import os
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from appliance.commandline import manual
from tests.buscoupler.conftest import tracked
from tests.helpers import ROOT

pytestmark = pytest.mark.timeout(300)
PACKAGES = ("appliance", "bridges", "bus", "buscoupler", "capture", "devices", "pipeline", "topologies")


@pytest.fixture(scope="module")
def built(made: Path) -> tuple[set[str], set[str]]:
    """Return the names of the files in the wheel and in the source distribution."""
    with zipfile.ZipFile(next(made.glob("*.whl"))) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(next(made.glob("*.tar.gz"))) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    return in_wheel, in_sdist


def test_the_wheel_has_every_file_of_the_packages(built: tuple[set[str], set[str]]) -> None:
    needed = {name for name in tracked() if name.startswith(tuple(f"{package}/" for package in PACKAGES))}
    assert "capture/buscoupler.lua" in needed
    assert needed - built[0] == set()


def test_the_wheel_has_the_documents(built: tuple[set[str], set[str]]) -> None:
    needed = {name for name in tracked() if name.startswith("docs/")} | {
        name for name in tracked() if name.endswith(".md") and "/" not in name
    }
    places = {name.partition("/share/doc/buscoupler/")[2] for name in built[0]}
    assert "docs/wire/can.md" in needed
    assert needed - places == set()


def test_the_wheel_has_the_man_pages_that_its_build_makes(built: tuple[set[str], set[str]]) -> None:
    pages = {f"man/man{name[-1]}/{name}" for name in manual.pages()}
    assert "man/man1/buscoupler.1" in pages
    assert pages == {place for name in built[0] if (place := name.partition("/share/")[2]).startswith("man/")}


def test_the_wheel_alone_runs(made: Path, tmp_path: Path) -> None:
    """Not from the clone: the files of the package come from where it is installed."""
    with zipfile.ZipFile(next(made.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    command = [sys.executable, "-P", "-m", "buscoupler"]
    run = partial(subprocess.check_output, cwd="/", env=os.environ | {"PYTHONPATH": str(tmp_path)}, text=True)
    dissector = Path(run([*command, "capture", "dissector"]).strip())
    assert dissector.is_relative_to(tmp_path)
    assert dissector.is_file()
    example = str(tmp_path / "topologies/two-buses.yaml")
    assert run([*command, "check", example]) == f"{example}: ok\n"


def test_the_source_distribution_has_every_file_but_those_of_git(built: tuple[set[str], set[str]]) -> None:
    needed = {name for name in tracked() if not name.startswith(".")}
    assert {"CHANGELOG.md", "docs/index.md", "Makefile"} <= needed
    assert needed - built[1] == set()


@pytest.mark.skipif(which("make") is None, reason="there is no make")
def test_no_make_installs_into_the_environment_of_another_clone(tmp_path: Path) -> None:
    """That clone would run the code of this one from then on, and so would all services in it."""
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "other" / "bin").mkdir(parents=True)
    python = tmp_path / "other" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@" >> installed\n')
    python.chmod(0o755)
    (tmp_path / ".venv").symlink_to(tmp_path / "other")
    made = subprocess.run(["make", "generated"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert made.returncode == 2
    assert f".venv is a link, and pip would let {tmp_path / 'other'} run the code of this tree" in made.stdout
    assert not (tmp_path / "installed").exists()
