"""The audit in SQL finds exactly what was planted, and refuses what it does not know."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import Row

from benchmarks.pipeline import sql
from tests.rigs.planted import CAPTURES, Plan, generate, plan_of
from tests.rigs.planted.exact import found, hard, planted

if TYPE_CHECKING:
    import duckdb

SMALL: Final[dict[str, Any]] = {
    "rate": 400.0,
    "lost": 0.005,
    "doubled": 0.003,
    "echoed": 0.002,
    "aged": 0.002,
    "seed": 7,
}
"""So slow that the takeovers are further apart than equal frames are matched."""


def opened(directory: Path) -> "duckdb.DuckDBPyConnection":
    return sql.connect(directory, 2, "1GB", directory / "spilled")


def summary(db: "duckdb.DuckDBPyConnection") -> Iterator[Row]:
    result = db.execute("FROM summary")
    names = [column[0] for column in result.description]
    for row in result.fetchall():
        yield Row(**dict(zip(names, row, strict=True)))


def plans() -> dict[str, Plan]:
    easy = {sort: plan_of(sort, 30_000, **SMALL) for sort in CAPTURES}
    return easy | {f"hard, {sort}": replace(hard(60_000, sort), **SMALL) for sort in CAPTURES}


@pytest.mark.parametrize("plan", [pytest.param(plan, id=name) for name, plan in plans().items()])
def test_it_finds_every_fault_and_no_other(tmp_path: Path, plan: Plan) -> None:
    truth = generate(tmp_path, plan)
    db = opened(tmp_path)
    sql.audit(db)
    counts, due = found(summary(db)), planted(truth)
    assert counts == due
    assert all(count.total() > 0 for count in due.values())
    assert db.execute("SELECT frames FROM totals").fetchone() == (truth.frames,)


def test_it_refuses_holes_of_which_it_does_not_know(tmp_path: Path) -> None:
    generate(tmp_path, plan_of("all", 30_000, rate=400.0, holes=1))
    with pytest.raises(ValueError, match="does not know captures with holes"):
        sql.audit(opened(tmp_path))
