"""A distribution of `examples/`, installed without its build tools, and commands that run beside it."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import ROOT


class Installed:
    """The modules and the metadata of an example are in `site`; its sources and tests are in `source`."""

    def __init__(self, example: Path, place: Path) -> None:
        self.place, self.source, self.site = place, place / "source", place / "site"
        shutil.copytree(example, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
        package = project["name"].replace("-", "_")
        shutil.copytree(self.source / package, self.site / package)
        # An installer writes this too; it would need its build tools, and the network for them.
        metadata = self.site / f"{package}-{project['version']}.dist-info"
        metadata.mkdir()
        head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (metadata / "METADATA").write_text(head)
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (metadata / "entry_points.txt").write_text("\n".join(groups))

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": f"{self.site}:{ROOT}"}

    def own_tests(self) -> subprocess.CompletedProcess[str]:
        """Run the tests of the example."""
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
            cwd=self.source, env=self.environment, capture_output=True, text=True,
        )  # fmt: skip

    def buscoupler(self, *words: str, status: int = 0) -> str:
        """Return what a command says, with the example installed."""
        done = subprocess.run(
            [sys.executable, "-m", "buscoupler", *words],
            env=self.environment, cwd=self.place, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def process(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command beside the test, and end it."""
        command = [sys.executable, "-m", "buscoupler", *words]
        started = subprocess.Popen(
            command, env=self.environment, cwd=self.place, stdout=subprocess.PIPE, text=True
        )
        with started:
            try:
                yield started
            finally:
                started.terminate()
