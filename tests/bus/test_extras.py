"""Lines that a user can type: each is run here, or is the path of the program that runs it."""

import shlex
import sys
from pathlib import Path

import pytest

from bus import extras
from bus.errors import LinkError
from bus.needs import Library, Readable


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the programs of an environment `.venv` below the current directory, which is not on the PATH."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip", "buscoupler"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setattr(sys, "argv", [str(programs / "buscoupler")])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return programs


def test_from_a_clone_the_path_is_short(environment: Path) -> None:
    assert extras.program() == ".venv/bin/buscoupler"
    assert extras.install("sail") == ".venv/bin/python -m pip install 'buscoupler[sail]'"
    assert extras.pip() == ".venv/bin/python -m pip"


def test_from_elsewhere_the_path_is_whole(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    assert extras.program() == str(environment / "buscoupler")


def test_what_the_path_finds_needs_no_path(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{environment}:/usr/bin")
    assert extras.program() == "buscoupler"
    assert extras.install("sail") == "pip install 'buscoupler[sail]'"
    assert extras.install("") == "pip install buscoupler"


def test_what_is_lacking_is_said_in_one_way(environment: Path) -> None:
    text = extras.lacking("can:can0", "python-can", "can")
    assert text == "can:can0 needs python-can: run .venv/bin/python -m pip install 'buscoupler[can]'"


def test_a_library_that_is_not_installed_is_said_and_one_that_is_is_not(environment: Path) -> None:
    text = "it needs no-such: run .venv/bin/python -m pip install 'buscoupler[can]'"
    assert extras.absent("it", Library("no_such_module", "no-such", "can")) == text
    assert extras.absent("it", Library("json", "json", "")) == ""


def test_a_module_is_started_by_its_interpreter(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/buscoupler/__main__.py"])
    assert extras.program() == ".venv/bin/python -m buscoupler"


def test_a_path_with_a_blank_is_one_word(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/my programs/buscoupler"])
    assert shlex.split(extras.program()) == ["/my programs/buscoupler"]


def test_a_module_that_is_missing_is_told_by_its_package_and_extra(environment: Path) -> None:
    told = extras.unmet("it", ModuleNotFoundError(name="serial.tools"))
    assert told == "it needs pyserial: run .venv/bin/python -m pip install 'buscoupler[uart]'"


def test_a_module_that_no_extra_brings_is_our_defect() -> None:
    with pytest.raises(ModuleNotFoundError):
        extras.unmet("it", ModuleNotFoundError(name="bus"))


def test_the_first_library_that_is_not_there_is_told() -> None:
    needs = (Readable("/nowhere"), Library("json", "json", "x"), Library("no_such", "no-such", "can"))
    with pytest.raises(LinkError, match=r"^it needs no-such: run .*install 'buscoupler\[can\]'$"):
        extras.check("it", needs)
    extras.check("it", needs[:2])
