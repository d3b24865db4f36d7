"""The figures of the catalog: the load counts what it does, the page says what was missed."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.catalog.__main__ import ECHO, LIVES, page
from benchmarks.catalog.rig import Life, catalog, echo, echoed, lives, running


@pytest.mark.parametrize("life", LIVES)
def test_services_stay_listed_and_each_beat_is_answered(life: Life, tmp_path: Path) -> None:
    with running(*catalog(tmp_path / "records")) as target:
        values = asyncio.run(lives(target, life, 20, 1.2))
    assert values["listed"] == 1
    assert values["answered_per_s"] > 0
    assert values["mib"] > 1


def test_the_yardstick_answers() -> None:
    with running(*echo()) as target:
        assert asyncio.run(echoed(target, 20, 0.3))["answered_per_s"] > 0


def test_the_page_says_what_was_missed() -> None:
    run = {"core": 0.2, "answered_per_s": 990.0, "listed": 1.0, "mib": 30.0, "sent": 1.0}
    base = {"core": 0.1, "answered_per_s": 990.0}
    text = page({life: [run] for life in LIVES} | {ECHO: [base]}, 1, 1000, 1.0)
    assert "| heartbeats by UDP, each answered by one | 20 % | 2 | 990 | 100.0% | 30 | **missed** |" in text
    text = page({life: [run | {"core": 0.05}] for life in LIVES} | {ECHO: [base]}, 1, 1000, 1.0)
    assert text.count("reached") == 1
