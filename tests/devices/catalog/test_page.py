"""The table of what is required names tests that exist."""

import re

from tests.helpers import ROOT


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs/dbp.md").read_text()
    files = (ROOT / "tests/devices/catalog").glob("test_*.py")
    tests = {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 20
    assert named - tests == set()
