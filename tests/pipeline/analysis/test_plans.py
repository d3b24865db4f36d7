"""The plans of jobs: only sums of numbers, no Python for each row, nothing that a Connect server refuses."""

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pipeline.analysis import failovers, last, latency, rates
from pipeline.analysis.shared import clocks, hops, inventory, places, sums
from pipeline.cache import cached, release
from pipeline.input import read as capture
from pipeline.input.sample import write
from tests.helpers import ROOT
from tests.pipeline.engines import plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDERS = [ROOT / "pipeline" / "analysis", ROOT / "pipeline" / "jobs"]
REFUSED = {
    "sparkContext",
    "_jvm",
    "_jdf",
    "_jsc",
    "rdd",
    "udf",
    "pandas_udf",
    "mapInPandas",
    "mapInArrow",
    "toPandas",
}


def test_nothing_is_used_that_connect_refuses_or_that_is_python_for_each_row() -> None:
    used = {
        f"{path.name}: {node.attr}"
        for folder in FOLDERS
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in REFUSED
    }
    assert not used


@pytest.fixture(scope="module")
def rows(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "DataFrame":
    directory = tmp_path_factory.mktemp("sample")
    write(directory)
    return capture.read(spark, capture.root(str(directory)))


def test_all_rows_are_summed_up_by_hash(rows: "DataFrame") -> None:
    at = places.as_places(inventory.take(rows))
    frame_sums = sums.sums(sums.keyed(rows, at), at)
    frames = {
        "summarised": inventory.summarised(rows),
        "counted": inventory.counted(rows),
        "sums": frame_sums,
        "signatures": sums.signatures(frame_sums, at),
        "activity": failovers.activity(rows),
        "rates": rates.rates(rows),
        "talkers": rates.talkers(rows),
        "last": last.newest(rows).drop("payload"),
        "pairs": clocks.least(hops.wire_hops(latency.timed(rows)[0])),
    }
    found = {name: plan(frame) for name, frame in frames.items()}
    assert all("HashAggregate" in text for text in found.values())
    assert not [name for name, text in found.items() if name != "last" and "SortAggregate" in text]


def test_the_check_can_fail(rows: "DataFrame") -> None:
    assert "SortAggregate" in plan(rows.groupBy("bus").agg({"peer": "max"}))


def test_a_resident_server_takes_no_read_for_an_earlier_one(spark: "SparkSession", tmp_path: Path) -> None:
    write(tmp_path)
    once, again = (capture.read(spark, capture.root(str(tmp_path))) for _ in range(2))
    assert once.sameSemantics(once)
    assert not once.sameSemantics(again)


def test_what_was_kept_is_let_go_of(rows: "DataFrame") -> None:
    frame = cached(rows.select("bus"))
    assert frame.storageLevel.useMemory
    release()
    assert not frame.storageLevel.useMemory


def test_many_segments_are_summed_up_as_few_are(rows: "DataFrame") -> None:
    few = places.as_places(inventory.take(rows))
    before = tuple(f"a{n:02}" for n in range(40))  # sorted before "left" and "right"
    many = few._replace(segments=(*before, *few.segments))
    assert (few.words, many.words) == (1, 2)
    one = {row.key: row for row in sums.sums(sums.keyed(rows, few), few).collect()}
    two = {row.key: row for row in sums.sums(sums.keyed(rows, many), many).collect()}
    moved = len(before) - 31
    assert {row.word0 for row in two.values()} == {0}
    assert {key: row.word0 << moved for key, row in one.items()} == {k: row.word1 for k, row in two.items()}
    assert {key: row.rows for key, row in one.items()} == {key: row.rows for key, row in two.items()}
