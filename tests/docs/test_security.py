"""The page about security names what is really built in."""

import re
from importlib.metadata import version
from pathlib import Path

import pynng

from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()


def test_the_versions_within_the_wheel_of_pynng_are_stated() -> None:
    (library,) = Path(pynng.__file__).parent.glob("_nng*.so")
    found = re.search(rb"Mbed TLS (\d+\.\d+\.\d+)", library.read_bytes())
    nng = pynng.ffi.string(pynng.lib.nng_version()).decode()
    assert found is not None
    wanted = f"`pynng` {version('pynng')} contains NNG {nng} and Mbed TLS {found[1].decode()}"
    assert wanted in " ".join(PAGE.split())
