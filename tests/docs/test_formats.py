"""The table of formats on the page of captures has what the table in the code has."""

import re

from capture.formats.table import FORMATS
from tests.helpers import ROOT

ROW = re.compile(r"^\| `([a-z0-9-]+)` \| `([^`]+)` \| (.*) \|$", re.MULTILINE)


def test_the_page_of_captures_has_every_format() -> None:
    page = (ROOT / "docs/capture.md").read_text()
    rows = {key: (suffix, limits) for key, suffix, limits in ROW.findall(page)}
    assert list(rows) == [one.key for one in FORMATS]
    for one in FORMATS:
        suffix, limits = rows[one.key]
        assert suffix == next(iter(one.suffixes), "--format")
        assert ("ns" in limits.split()) == (one.step_ns > 1)
        assert ("error frames" in limits) == (not one.errors)
        named = one.names()
        assert ("channels" in limits.split(",")[0]) == (named("can0") == named("can1"))
        assert ("directions" in limits) == (not one.directions)
        assert (f"extra `{one.extra}`" in limits) == bool(one.extra)
