"""The simulated year of a watch: its directory is as recorders leave it, and the verdict tells growth."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from benchmarks.watch_year.__main__ import Sample, verdict
from benchmarks.watch_year.files import DAY_H, Year
from benchmarks.watch_year.rig import Memory
from capture.files import days_directory, listed
from capture.live import Live, Position, latest, pieces

DAYS = 5


def test_each_row_is_put_once_and_old_days_go(tmp_path: Path) -> None:
    year, look = Year(tmp_path, gateways=2, rows=3, keep_days=2), Live(days_directory(tmp_path))
    at, taken = step(look, {})
    for hour in range(DAYS * DAY_H):
        year.put(hour)
        at, rows = step(look, at)
        taken += rows
    year.end()
    taken += step(look, at)[1]
    assert year.files == 2 * DAYS * DAY_H
    assert taken == year.put_rows == 3 * year.files
    assert len({path.parent.parent for path in listed(tmp_path)}) == 3  # today, and two days before
    assert any(one.is_directory for one in look.held())  # what has not changed for long is old


def step(look: Live, at: Position) -> tuple[Position, int]:
    """Take what is new. Return the position after it, and how many rows it was."""
    held = look.held()
    end = latest(at, held, None)
    return end, sum(piece.last - piece.first + 1 for piece in pieces(at, end, held))


def sample(month: int, heap: int) -> Sample:
    return Sample(month, month * 10, Memory(heap, 1, 100, 100, 100), (0, 0), (0, 0), (0, 0), [1.0])


@pytest.mark.parametrize(("heap", "is_within"), [(119, True), (121, False)])
def test_growth_by_more_than_a_fifth_is_too_much(heap: int, is_within: bool) -> None:
    lines, found = verdict([sample(1, 500), sample(2, 100), sample(3, heap)])
    assert found is is_within
    assert lines[0].endswith(f"{heap - 100:+.1f}% of month 2")
