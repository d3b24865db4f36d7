"""Programs without root's right to read and write everywhere, and a disk without room."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_CAPABILITIES = "-dac_override,-dac_read_search"
LIMITED = ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"] * (os.geteuid() == 0)
"""Words in front of a command; none are needed if we are not root."""

needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="Debian package util-linux"
)


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
