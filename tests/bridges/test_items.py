"""How long the items of media take."""

import pytest

from bridges.items import Exchange


@pytest.mark.parametrize(
    ("byte_s", "seconds"),
    [(0.25, 10 * 0.25 + 2 * 3.5 * 0.25), (0.125, 10 * 0.125 + 2 * 0.5), (0.0, 2 * 0.5)],
)
def test_an_exchange_takes_its_bytes_and_twice_the_longer_pause(byte_s: float, seconds: float) -> None:
    assert Exchange(10, 0.5, 3.5).seconds(byte_s) == seconds
