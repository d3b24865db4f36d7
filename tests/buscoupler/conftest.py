"""The wheel and the source distribution, built once for the tests of both modules."""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.helpers import ROOT

NEEDED = 77  # setuptools, by pyproject.toml
BUILD = """
import sys
sys.path.insert(0, "packaging/backend")
import setuptools_with_manual as backend
out = sys.argv[1]
backend.build_wheel(out)
backend.build_sdist(out)
"""


def tracked() -> list[str]:
    """Return the files of the repository, or of this source distribution."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is not a clone")
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="session")  # tests/helpers/rooms.py keeps its modules together
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source distribution, and return their directory."""
    if int(version("setuptools").partition(".")[0]) < NEEDED:
        pytest.skip(f"setuptools is older than {NEEDED}: pip install -e '.[dev]'")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    done = subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out
