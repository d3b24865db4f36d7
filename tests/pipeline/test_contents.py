"""The summary at the end of a capture file, compared with the sums of its rows."""

from collections import defaultdict
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from capture import schema
from capture.contents import Summary
from capture.schema import Kind

Rows = list[dict[str, Any]]
METADATA = {schema.META_VERSION: "1", schema.META_GATEWAY: "gw"}


def made(count: int) -> Rows:
    """Return rows of three kinds, two boots and four places; only some have an envelope."""
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


def as_summarised(rows: Rows) -> dict[tuple[Any, ...], tuple[int, ...]]:
    found: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for row in rows:
        of = row["contents"]
        sort = row["boot"], row["hub"], row["bus"], row["dir"], of["kind"], row["verdict"], row["reason"]
        found[(*sort, row["peer"])] = (
            of["rows"], of["enveloped"], row["count"], row["cap_seq"], of["last_cap_seq"], row["ts_ns"],
            of["last_ns"],
        )  # fmt: skip
    return found


def test_a_file_ends_with_a_row_for_each_sort_of_its_rows() -> None:
    table = pa.Table.from_pylist(made(200), schema=schema.arrow_schema(METADATA))
    summary = Summary()
    groups, last = [summary.widened(part) for part in (table.slice(0, 120), table.slice(120))], summary.rows()
    assert last is not None
    assert pa.concat_tables(groups).drop_columns([schema.CONTENTS]).to_pylist() == table.to_pylist()
    assert {row["kind"] for row in last.to_pylist()} == {Kind.CONTENTS}
    assert as_summarised(last.to_pylist()) == by_hand(made(200))
    assert last.schema.metadata[schema.META_VERSION.encode()] == str(schema.VERSION).encode()


def test_no_rows_have_no_summary() -> None:
    assert Summary().rows() is None
