"""Programs without root's right to read and write everywhere."""

import os
import shutil

import pytest

_CAPABILITIES = "-dac_override,-dac_read_search"
LIMITED = ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"] * (os.geteuid() == 0)
"""Words in front of a command; none are needed if we are not root."""

needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="Debian package util-linux"
)
