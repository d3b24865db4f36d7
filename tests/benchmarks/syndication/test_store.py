"""The benchmark of the store measures a broker with it and without."""

import re
from pathlib import Path

import pytest

pytest.importorskip("lark", reason="the extra syndication is not installed")
pytest.importorskip("re2", reason="the extra syndication is not installed")

from benchmarks.syndication.store import report


def test_both_have_a_row(tmp_path: Path) -> None:
    text = report(tmp_path, 10_000, 0.02)
    assert re.search(r"^\| off( \| [\d,.]+){3} \| 0 \|$", text, re.MULTILINE)
    assert re.search(r"^\| on( \| [\d,.]+){3} \| [\d,]+ \|$", text, re.MULTILINE)
    assert re.search(r"takes \d+\.\d\d times as long", text)
