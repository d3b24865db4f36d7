"""The benchmark of the status page, in short: a gateway with real peers, and Chromium."""

import pytest

from benchmarks.status_page import ADDRESSES, rounds
from tests.helpers.browser import needs_chromium


@needs_chromium
@pytest.mark.timeout(60)
def test_it_weighs_both_ends_of_the_page() -> None:
    (found,) = rounds(1, 1.2, 2 * ADDRESSES)
    assert found.without > 0
    assert found.open > 0
    assert found.work_ms > 0  # the benchmark holds it against its limit, on a machine of its own
    assert found.frames_ms
