"""Aggregates with many groups: Sail charges a structure or list in the state of each with the batch that it
came in, so that 50,000 groups need 16 GB, which it refuses.
"""

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pysail")

from pipeline.analysis import last, signals
from pipeline.analysis.audit import replays
from pipeline.cache import cached
from pipeline.engine.choice import SAIL
from pipeline.signals.conditions import Condition
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS = 100_000
KEPT = {"first", "last", "max", "max_by", "min", "min_by"}
"""Aggregates that keep a value as it is."""


def of_aggregates(text: str) -> Iterator[str]:
    """Find the aggregates that keep structures or lists, but those over a window, which has one state."""
    tree = ast.parse(text)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    over = {id(node.value) for node in attributes if node.attr == "over"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node) in KEPT and id(node) not in over:
            inner = [one for argument in node.args for one in ast.walk(argument)]
            if any(name_of(one) in ("struct", "array") for one in inner if isinstance(one, ast.Call)):
                yield name_of(node)


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def test_no_aggregate_keeps_structures_or_lists() -> None:
    paths = sorted((ROOT / "pipeline").rglob("*.py"))
    assert not [f"{path.name}: {name}" for path in paths for name in of_aggregates(path.read_text())]


def test_the_search_finds_them() -> None:
    text = 'F.max_by("a", F.struct("b")); F.min(F.when(x, F.array("b"))); F.max(F.struct("a")).over(w)'
    assert list(of_aggregates(text)) == ["max_by", "min"]


COLUMNS = (
    "id AS ts_ns", "id AS first_ns", "id AS last_ns", "id AS start_ns", "id AS key", "id AS pattern_key",
    "'gw' AS gateway", "'can' AS bus", "'bridge b' AS hub", "'rpm' AS signal", "'' AS unit",
    "'engine' AS pattern", "concat('a/', id) AS tokens", "binary(concat('p', id)) AS payload",
    "1L AS rows", "1L AS n", "1L AS numbers", "id AS origin",
    "id AS seq", "smallint(1) AS dir", "false AS stood_by",
    "double(id % 4000) AS value", "string(NULL) AS text", "double(id) AS last", "string(NULL) AS last_text",
    "1D AS sum", "1D AS min", "1D AS max",
)  # fmt: skip
JOINS = {"bridge b": frozenset({"can", "shop"})}
ASKED: "dict[str, Callable[[DataFrame], DataFrame]]" = {
    "last values": lambda rows: last.nearest(last.newest(of_patterns(rows), again=True)),
    "resampled": signals.resampled,
    "conditions": lambda rows: signals.intervals(rows, Condition(("engine/rpm",), "s0 > 3000")),
    "replays": lambda rows: replays.with_entries(rows, JOINS, by_envelope=False),
}


def of_patterns(rows: "DataFrame") -> "DataFrame":
    return rows.drop("pattern").selectExpr("*", "key AS pattern", "0 AS near")


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("name", ASKED)
def test_many_groups_are_answered(spark: "SparkSession", name: str) -> None:
    rows = cached(spark.range(GROUPS).selectExpr(*COLUMNS))
    found = cached(ASKED[name](rows))
    assert found.count() == {"conditions": GROUPS // 4000, "replays": 2 * GROUPS}.get(name, GROUPS)
