"""The table of what is required names tests that exist."""

import re

from tests.helpers import ROOT


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "tests/devices/dbp/required.md").read_text()
    files = (ROOT / "tests").rglob("test_*.py")
    pattern = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
    tests = {name for file in files for name in pattern.findall(file.read_text())}
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 20
    assert named - tests == set()
