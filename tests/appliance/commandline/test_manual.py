"""The man pages say what the parsers say, formatters accept them, and their build needs few packages."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from appliance.commandline import cli, manual
from tests.helpers import ROOT

MAKE = """
import sys
started = set(sys.modules)  # files *.pth load some, whoever imports them
from appliance.commandline.manual import write
write(sys.argv[1])
print(*{name.partition(".")[0] for name in sys.modules if name not in started})
"""
REQUIRED = {"PyYAML", "msgpack", "setuptools"}  # by [build-system] of pyproject.toml


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write all pages. Return their paths."""
    directory = tmp_path_factory.mktemp("man")
    manual.write(str(directory))
    return sorted(directory.glob("man?/*"))


def test_each_command_has_a_page_and_the_overview_names_it(pages: list[Path]) -> None:
    written = {page.name: page.read_text() for page in pages}
    assert written == manual.pages()
    for name in cli.commands():
        assert f"buscoupler-{name}.1" in written
        assert f"buscoupler\\-{name.replace('-', chr(92) + '-')} (1)" in written["buscoupler.1"]


def test_the_build_of_a_wheel_makes_them_with_the_packages_that_it_requires(tmp_path: Path) -> None:
    loaded = subprocess.check_output([sys.executable, "-c", MAKE, str(tmp_path)], cwd=ROOT, text=True)
    owners = packages_distributions()
    assert {owner for name in loaded.split() for owner in owners.get(name, ())} <= REQUIRED | {"buscoupler"}
    assert (tmp_path / "man5/buscoupler.yaml.5").is_file()


def test_mandoc_finds_nothing_wrong(pages: list[Path]) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)], capture_output=True, text=True
    )
    # Pages have no date: it would change with every release.
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_man_shows_every_page_without_a_warning(pages: list[Path]) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man-db with groff is not installed")
    for page in pages:
        words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
        done = subprocess.run(
            words, capture_output=True, text=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin"}
        )
        assert (done.returncode, done.stderr) == (0, ""), page


def test_the_environment_that_make_makes_has_them_where_the_readme_looks() -> None:
    """An editable install has no data files."""
    _, _, rule = (ROOT / "Makefile").read_text().partition("\n.venv/%:")
    (place,) = re.findall(r"appliance\.commandline\.manual (\S+)", rule.partition("\n\n")[0])
    assert re.findall(r"`man -M (\S+) buscoupler", (ROOT / "README.md").read_text()) == [place]
    assert f"`MANPATH={place}:`" in (ROOT / "docs/commands.md").read_text()
