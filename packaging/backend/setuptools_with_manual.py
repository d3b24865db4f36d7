"""The build backend (PEP 517): setuptools', which first makes the man pages that a wheel carries.

The parsers and the model of topologies say what is on the pages, so they are in no repository. To make them
takes no dependency of the product but those that `requires` of pyproject.toml names.
"""

import subprocess
import sys
from shutil import rmtree
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that are not here

PAGES = "build/man"  # where data-files of pyproject.toml has them from


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build a wheel into a directory. Return its file name."""
    _make_pages()
    return build_meta.build_wheel(directory, settings, metadata)


def _make_pages() -> None:
    rmtree(PAGES, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "appliance.commandline.manual", PAGES], check=True)
