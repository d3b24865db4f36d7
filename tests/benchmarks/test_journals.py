"""Journals side by side: each system keeps the same records, and the ratios are to our files."""

from pathlib import Path

import pytest

from benchmarks.journals import SYSTEMS, Sample, available, lines, measure


@pytest.mark.parametrize("name", available())
def test_a_system_returns_what_it_was_given_in_order(name: str, tmp_path: Path) -> None:
    records = [b"\0\0\0\0\0\0\0\4" + b"%04d" % number for number in range(300)]
    store = SYSTEMS[name](tmp_path)
    store.commit(records[:200])
    store.commit(records[200:])
    assert list(store.read()) == records
    store.close()


def test_all_loads_are_measured_on_each_system(tmp_path: Path) -> None:
    found = measure(tmp_path, 1, 1)
    assert [list(samples) for samples in found.values()] == [available()] * 2
    assert all(min(one) > 0 for samples in found.values() for (one,) in samples.values())


def test_ratios_are_to_our_files() -> None:
    samples = {"files": [Sample(100, 2, 10, 1)], "SQLite": [Sample(50, 6, 20, 1)]}
    (_, line) = lines("load", samples)
    assert "append_per_s 50.00 (0.50) append_us 6.00 (3.00) read_per_s 20.00 (2.00)" in line
