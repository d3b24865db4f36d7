"""What commands say of counts by reason: with what to change, where that is known."""

import pytest

from appliance.probe.words import with_hints
from bridges.items import FD_ON_CLASSIC


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, ""),
        ({"queue full": 1, "aged out": 2}, "2 aged out, 1 queue full"),
        ({FD_ON_CLASSIC: 3}, f"3 {FD_ON_CLASSIC}: add fd=true to the endpoint"),
        ({"not sent here": 1}, "1 not sent here: what may leave stands in the endpoint, as &send=..."),
        ({FD_ON_CLASSIC: 3, "stale": 1}, f"3 {FD_ON_CLASSIC}, 1 stale: add fd=true to the endpoint"),
    ],
)
def test_a_reason_has_its_hint(counts: dict[str, int], text: str) -> None:
    assert with_hints(counts) == text
