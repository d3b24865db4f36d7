"""What segments tell of themselves, beside what a pass over all of their rows finds."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.planted import Plan, generate
from capture import schema
from capture.contents import told
from capture.schema import Kind
from pipeline import read as capture
from pipeline import survey
from tests.pipeline.conftest import plan

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

Rows = list[dict[str, Any]]
METADATA = {schema.META_VERSION: "1", schema.META_GATEWAY: "gw"}


def made(count: int) -> Rows:
    """Rows of three kinds, two boots and four places; only some with an envelope."""
    return [
        {
            "ts_ns": 1000 - n, "boot": n % 2, "cap_seq": n, "kind": n % 3, "hub": f"hub {n % 2}", "bus": "b",
            "peer": f"peer {n % 5}", "dir": n // 2 % 2, "count": n, "verdict": n % 3, "type": 1,
            "reason": "word" if n % 3 else None, "origin": n if n % 4 else None, "message_bytes": 10,
        }
        for n in range(count)
    ]  # fmt: skip


def by_hand(rows: Rows) -> dict[tuple[Any, ...], tuple[int, ...]]:
    sorts: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        sort = [row[name] for name in ("boot", "hub", "bus", "dir", "kind", "verdict", "reason")]
        sorts[(*sort, row["peer"] if row["kind"] == Kind.LEDGER else "")].append(row)
    return {
        sort: (
            len(group), sum(row["origin"] is not None for row in group), sum(row["count"] for row in group),
            min(row["cap_seq"] for row in group), max(row["cap_seq"] for row in group),
            min(row["ts_ns"] for row in group), max(row["ts_ns"] for row in group),
        )
        for sort, group in sorts.items()
    }  # fmt: skip


def as_told(rows: Rows) -> dict[tuple[Any, ...], tuple[int, ...]]:
    found: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for row in rows:
        of = row["contents"]
        sort = row["boot"], row["hub"], row["bus"], row["dir"], of["kind"], row["verdict"], row["reason"]
        found[(*sort, row["peer"])] = (
            of["rows"], of["enveloped"], row["count"], row["cap_seq"], of["last_cap_seq"], row["ts_ns"],
            of["last_ns"],
        )  # fmt: skip
    return found


def test_a_segment_tells_each_sort_of_its_rows() -> None:
    table = pa.Table.from_pylist(made(200), schema=schema.arrow_schema(METADATA))
    *groups, last = told([table.slice(0, 120), table.slice(120)])
    assert pa.concat_tables(groups).drop_columns([schema.CONTENTS]).to_pylist() == table.to_pylist()
    assert {row["kind"] for row in last.to_pylist()} == {Kind.CONTENTS}
    assert as_told(last.to_pylist()) == by_hand(made(200))
    assert last.schema.metadata[schema.META_VERSION.encode()] == str(schema.VERSION).encode()


def test_nothing_tells_nothing() -> None:
    assert list(told([])) == []


@pytest.fixture
def planted(tmp_path: Path) -> str:
    generate(tmp_path, Plan(rows=20_000))
    return capture.root(str(tmp_path))


def same(found: "list[Row]") -> set[tuple[Any, ...]]:
    return {tuple(value for name, value in row.asDict().items() if name != "tellers") for row in found}


def is_told(found: "list[Row]") -> bool:
    return any(row.tellers for row in found)


def test_it_is_what_a_pass_over_all_rows_finds(spark: "SparkSession", planted: str) -> None:
    rows = capture.read(spark, planted)
    found = survey.look(rows)
    assert is_told(found)
    assert same(found) == same(survey.survey(rows).collect())


def without_contents(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    kept = table.filter(pa.compute.not_equal(table["kind"], Kind.CONTENTS.value))
    pq.write_table(kept.drop_columns([schema.CONTENTS]), path)


def test_one_segment_of_an_earlier_version_makes_it_a_pass(spark: "SparkSession", planted: str) -> None:
    before = same(survey.look(capture.read(spark, planted)))
    without_contents(capture.segments(planted)[0])
    found = survey.look(capture.read(spark, planted))
    assert not is_told(found)
    assert same(found) == before


def test_it_is_read_without_the_rows(spark: "SparkSession", planted: str) -> None:
    """The rows' group says that no contents are in it."""
    for path in capture.segments(planted):
        kinds = [pq.read_metadata(path).row_group(n).column(3).statistics for n in range(2)]
        assert [(one.min, one.max) for one in kinds[1:]] == [(Kind.CONTENTS, Kind.CONTENTS)]
        assert kinds[0].max < Kind.CONTENTS
    assert "EqualTo(kind,3)" in plan(survey.told(capture.read(spark, planted)))
