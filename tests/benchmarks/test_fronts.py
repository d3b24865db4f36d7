"""The benchmark of fronts measures what its rows say."""

from collections.abc import Iterator
from itertools import count

import pytest

from benchmarks import fronts
from benchmarks.fronts import FRONTS, batch_of, measured
from bridges.front.settings import Front


@pytest.mark.parametrize("name", FRONTS)
def test_each_front_does_to_a_batch_what_its_name_says(name: str) -> None:
    room = fronts.Room(FRONTS[name] or Front())
    batch = batch_of(64, 8, 64)
    room.take(batch)
    assert (room.far.count < room.taken) is (name in ("unchanged, none new", "limits, none pass"))


def test_all_fronts_are_measured_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: Iterator[int] = count()
    monkeypatch.setattr(fronts, "perf_counter", lambda: next(ticks) / 100)
    found = measured(batch_of(4, 16, 16))
    assert {name: len(rates) for name, rates in found.items()} == dict.fromkeys(FRONTS, fronts.TURNS)
    assert min(map(min, found.values())) > 0
