"""The bounds of what a service reports."""

from bus.report import LISTED
from tests.helpers import ROOT


def test_the_bound_of_rows_is_that_of_the_page() -> None:
    assert f"up to {LISTED} `registrations` of a TMQ broker" in (ROOT / "docs/status.md").read_text()
