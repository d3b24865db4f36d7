"""The benchmark of the status page, in short: a gateway with real peers, and Chromium."""

import pytest

from benchmarks.status_page import ADDRESSES, FRAME_MS, rounds
from tests.helpers.browser import needs_chromium


@needs_chromium
@pytest.mark.timeout(60)
def test_it_weighs_both_ends_of_the_page() -> None:
    (found,) = rounds(1, 1.2, 2 * ADDRESSES)
    assert found.without > 0
    assert found.open > 0
    assert 0 < found.work_ms < FRAME_MS
    assert found.frames_ms
