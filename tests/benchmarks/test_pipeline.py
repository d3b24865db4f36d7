"""The section about the cost of the jobs: its numbers beside the aims."""

from pathlib import Path

import pytest

from benchmarks.pipeline import __main__ as program
from benchmarks.pipeline.__main__ import commands, digest
from benchmarks.pipeline.page import Cold, Measured, Warm, aims, growth, markdown, skews


def measured(sort: str, millions: int, spark_s: float, duckdb_s: float, read: int = 2) -> Measured:
    rows = millions * 1_000_000
    work = {"jobs": 5, "read": read * rows, "collected": 2_200_000, "broadcast": 5}

    def warm(s: float) -> Warm:
        return Warm({}, {"audit": s, "rates": s / 10}, 100.0, work)

    engines = {"spark": warm(spark_s), "sail": warm(1.0), "duckdb": warm(duckdb_s)}
    return Measured(sort, millions, rows, 0.3 * (sort == "heartbeat"), 9.0, engines)


RESULTS = [
    measured("trunk", 5, 2.0, 1.0),
    measured("trunk", 20, 10.0, 4.0),
    measured("heartbeat", 20, 16.0, 4.0, read=3),
]


def test_growth_and_skew_compare_the_time_of_a_row() -> None:
    assert growth(RESULTS, "spark") == {("trunk", 20): 10 / 2 / 4}
    assert skews(RESULTS, "spark") == {20: 1.6}


def test_each_aim_is_judged_by_the_worst_capture() -> None:
    found = list(aims(RESULTS))
    assert [aim.worst for aim in found] == [5, 3, None, 4, 1.25, 1.6, 2_200_000]
    assert [str(aim).endswith("| yes |") for aim in found] == [True, *[False] * 6]
    assert "not measured" in str(next(aim for aim in aims(RESULTS[:1]) if "20 M" in aim.text))


def test_all_tables_are_on_the_page() -> None:
    page = markdown(RESULTS, {5: {"spark audit": Cold(9.0, 800.0)}}, {"connect audit": 2.5}, "--millions 5")
    assert "`python -m benchmarks.pipeline --millions 5`" in page
    assert "| trunk | 20 M | 9 | 10.00 | 1.00 | 4.00 | 2.5 | 1.25 | 1.00 | 100 | 100 | 100 |" in page
    assert "| heartbeat | 20 M | 5 | 3.0 | 2,200,000 | 5 |" in page
    assert "| spark audit | 9.0 (800) |" in page


def test_answers_are_equal_in_any_order_and_differ_by_a_count() -> None:
    one = {"summary": [("lost", 2), ("echo", None)]}
    assert digest(one) == digest({"summary": [("echo", None), ("lost", 2)]})
    assert digest(one) != digest({"summary": [("lost", 3), ("echo", None)]})


def test_beside_the_whole_commands_stands_the_coldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "cold", lambda words: Cold(float("SELECT 1" in words), 0.0))
    found = commands(Path("capture"), "1g")
    assert {name for name, one in found.items() if one.s} == {"spark `SELECT 1`", "sail `SELECT 1`"}
    assert {"spark audit", "sail rates", "duckdb audit"} <= found.keys()
