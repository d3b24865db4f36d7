"""The man pages are those of the parsers, and what formats them has nothing to say."""

import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.commandline import cli, manual
from tests.helpers import ROOT

SHIPPED = ROOT / "docs" / "man"


def test_the_shipped_pages_are_what_the_parsers_say() -> None:
    shipped = {path.name: path.read_text() for path in SHIPPED.glob("man?/*")}
    assert shipped == manual.pages(), "run: make generated"


def test_each_command_has_a_page_and_the_overview_names_it(tmp_path: Path) -> None:
    manual.write(str(tmp_path))
    overview = (tmp_path / "man1" / "buscoupler.1").read_text()
    for name in cli.commands():
        assert (tmp_path / "man1" / f"buscoupler-{name}.1").is_file()
        assert f"buscoupler\\-{name.replace('-', chr(92) + '-')} (1)" in overview


def test_mandoc_finds_nothing_wrong() -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    words = ["mandoc", "-T", "lint", "-W", "warning", *map(str, sorted(SHIPPED.glob("man?/*")))]
    done = subprocess.run(words, capture_output=True, text=True)
    # Pages have no date: it would change with every release.
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_man_shows_every_page_without_a_warning() -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man-db with groff is not installed")
    for page in sorted(SHIPPED.glob("man?/*")):
        words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
        done = subprocess.run(
            words, capture_output=True, text=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin"}
        )
        assert (done.returncode, done.stderr) == (0, ""), page
