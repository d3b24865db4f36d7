"""`pipx install` of the wheel in a clean home: the command, man pages, documents, entry points, a gateway."""

import os
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.helpers.ports import free_port

pytestmark = [
    pytest.mark.skipif(shutil.which("pipx") is None, reason="pipx is missing: apt-get install pipx"),
    pytest.mark.timeout(300),
]
TOPOLOGY = """\
name: hall
gateways: {{gw: {{address: 127.0.0.1, status: "http://127.0.0.1:{0}"}}}}
buses: {{hall: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}}}
bridges: {{line: {{on: gw, join: [{{bus: hall}}, {{uart: {{port: /dev/no-such-line, baud: 9600}}}}]}}}}
"""


class Home:
    """A home directory with nothing but what pipx has put there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        kept = {"PIP_CACHE_DIR": str(Path.home() / ".cache/pip"), "PIP_NO_COMPILE": "1"}  # most is not used
        kept |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "LANG"))}
        pip_config = Path.home() / ".config/pip/pip.conf"  # where packages come from on this machine
        if pip_config.exists():
            kept.setdefault("PIP_CONFIG_FILE", str(pip_config))
        own = {"HOME": str(place), "PATH": f"{place}/.local/bin:/usr/bin:/bin"}
        self.environment = kept | own | {"PIPX_SHARED_LIBS": f"{place}/shared"}
        self._take_pip(place / "shared")

    def _take_pip(self, shared: Path) -> None:
        """Give pipx a copy of the pip of these tests: it would install one first, and then a newer one."""
        self.says("/usr/bin/python3", "-m", "venv", "--without-pip", str(shared))
        (packages,) = shared.glob("lib/python*/site-packages")
        pip = distribution("pip")
        for name in {file.parts[0] for file in pip.files or ()} - {".."}:
            shutil.copytree(str(pip.locate_file(name)), packages / name)
        (shared / "bin" / "pip").touch()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.place, env=self.environment, capture_output=True, text=True, timeout=240
        )

    def says(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def home(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Install the wheel with the medium UART, as the README does."""
    home = Home(tmp_path_factory.mktemp("home"))
    done = home.run("pipx", "install", f"{next(made.glob('*.whl'))}[uart]")
    if done.returncode and any(
        word in done.stdout + done.stderr for word in ("No matching distribution", "Connection", "resolution")
    ):
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return home


def test_the_command_is_there_and_finds_no_clone(home: Home) -> None:
    assert home.says("buscoupler", "--version").startswith("buscoupler 0.")
    assert "buscoupler" in home.says("pipx", "list", "--short")
    dissector = Path(home.says("buscoupler", "capture", "dissector").strip())
    assert dissector.is_relative_to(home.place)
    assert dissector.is_file()


def test_man_pages_and_documents_are_there(home: Home) -> None:
    environment = home.place / ".local/pipx/venvs/buscoupler"
    if not environment.exists():
        environment = home.place / ".local/share/pipx/venvs/buscoupler"
    for name in ("man/man1/buscoupler.1", "man/man1/buscoupler-run.1", "man/man5/buscoupler.yaml.5"):
        assert (environment / "share" / name).stat().st_size > 200
    assert (environment / "share/doc/buscoupler/docs/status.md").is_file()
    if shutil.which("man"):
        page = str(environment / "share/man/man1/buscoupler-run.1")
        assert "run" in home.says("man", "--local-file", page)


def test_entry_points_are_found_and_a_gateway_runs_with_its_page(home: Home) -> None:
    """The medium and the bus are found by entry points or records of the installed package alone."""
    file = home.place / "hall.yaml"
    file.write_text(TOPOLOGY.format(free_port(), free_port()))
    assert home.says("buscoupler", "check", str(file)).endswith(f"{file}: ok\n")
    done = home.run("buscoupler", "run", str(file), "--test", "--seconds", "1", "--run-directory", "run")
    assert done.returncode == 1, done.stdout + done.stderr  # nothing crosses
    assert "status page at http://127.0.0.1:" in done.stdout
    assert "/dev/no-such-line" in done.stdout
