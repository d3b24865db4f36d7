"""Tests of the measurement of a reload: it adds one listener, and says what the loop and the thread spent."""

from pathlib import Path

from benchmarks.reload import plant, reload
from tests.topologies.support import errors


def test_the_plant_is_what_check_accepts(tmp_path: Path) -> None:
    assert errors(plant(3, tmp_path, "more")) == []


async def test_a_small_reload_is_measured(tmp_path: Path) -> None:
    found = await reload(3, tmp_path)
    assert found.stood_ms > 0
    assert found.change_ms > 0
    assert found.thread_s > 0
