"""The bounds of a catalog."""

from dataclasses import replace

import pytest

from devices.dbp.catalog.bounds import Bounds


def test_the_bounds_of_a_catalog_are_those_of_its_page() -> None:
    """docs/wire/dbp.md, and the size of the file that follows from them."""
    b = Bounds()
    assert (b.frames, b.message_bytes, b.text_bytes, b.depth, b.items) == (64, 16 << 10, 200, 16, 1024)
    assert (b.services, b.services_per_host, b.entry_bytes, b.all_entry_bytes) == (4096, 2048, 8192, 4 << 20)
    assert (b.silenced, b.silence_s, b.interval_s) == (1024, 60, 1)
    assert b.file_bytes == (4 << 20) + 4096 * (200 + 6 * 200)


@pytest.mark.parametrize("name", ["frames", "services", "silence_s"])
def test_a_bound_of_a_catalog_is_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        replace(Bounds(), **{name: 0})
    assert replace(Bounds(), **{name: 1})


def test_the_interval_of_beats_may_be_fixed() -> None:
    assert (Bounds().interval_min_s, Bounds().interval_max_s) == (0.25, 60)
    assert replace(Bounds(), interval_min_s=2, interval_max_s=2)
    with pytest.raises(ValueError, match="must not be above"):
        replace(Bounds(), interval_min_s=2, interval_max_s=1.9)
