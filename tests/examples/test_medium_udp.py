"""The example of a medium in a distribution of its own, installed: nothing in this repository names it."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.ports import free_port

EXAMPLE = ROOT / "examples" / "medium-udp"
TOPOLOGY = """
name: t
gateways: {{a: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: a, listen: "tcp://127.0.0.1:{tcp}"}}}}
bridges: {{b: {{on: a, join: [bus: plant, udp: {{host: 127.0.0.1, port: {far}, local_port: {near}}}]}}}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the example's modules and its metadata; its sources and tests are in `source`."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, place / "source", ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(place / "source" / "buscoupler_udp", place / "site" / "buscoupler_udp")
    # An installer writes this too; it would need its build tools, and the network for them.
    metadata = place / "site" / f"buscoupler_udp-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(head)
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return place


def environment(installed: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{installed / 'site'}:{ROOT}"}


def buscoupler(installed: Path, *words: str, status: int = 0) -> str:
    """What a command says, with the example installed."""
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", *words],
        env=environment(installed), cwd=installed, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def process(installed: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "buscoupler", *words]
    started = subprocess.Popen(
        command, env=environment(installed), cwd=installed, stdout=subprocess.PIPE, text=True
    )
    with started:
        try:
            yield started
        finally:
            started.terminate()


@pytest.mark.timeout(120)
def test_it_passes_the_conformance_suite_from_outside(installed: Path) -> None:
    pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    source, env = installed / "source", environment(installed)
    done = subprocess.run(pytest_, cwd=source, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout


def test_commands_take_it_as_one_of_ours(installed: Path) -> None:
    tcp, near, far = (free_port() for _ in range(3))
    file = installed / "t.yaml"
    file.write_text(TOPOLOGY.format(tcp=tcp, near=near, far=far))
    assert buscoupler(installed, "check", str(file)) == f"{file}: ok\n"
    assert f"udp 127.0.0.1:{far}" in buscoupler(installed, "show", str(file))
    assert "udp:HOST:PORT?local_port=9950" in buscoupler(installed, "send", "--help")
    word = f"udp:127.0.0.1:{near}?local_port={far}"
    with (
        process(installed, "run", str(file)),
        process(installed, "recv", f"tcp://127.0.0.1:{tcp}", "--pattern", "fridge", "--count", "1") as heard,
    ):
        while heard.poll() is None:  # a bus remembers nothing: speak until somebody listens
            buscoupler(installed, "send", word, "fridge/temp", "--data", "21.5")
        assert heard.stdout is not None
        assert "21.5" in heard.stdout.read()
        assert heard.returncode == 0


def test_without_it_a_file_that_names_it_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "buscoupler", "send", "udp:127.0.0.1:9", "a"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == 2
    assert "'udp:127.0.0.1:9' is no endpoint" in done.stderr
