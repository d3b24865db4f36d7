"""The summary at the end of a capture file: one row for each sort of rows in it (`schema.Kind.CONTENTS`).

With it, jobs know who was where, what the ledgers say and what the recorders missed without a pass over all
rows; and the topology that the file was recorded under, if its schema has one. The summary is a row group of
its own, which readers find by Parquet's statistics of `kind`. Spark cannot read the metadata of a footer, and
a second file may be missing or stale.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from capture.schema import CONTENTS, META_TOPOLOGY, Kind, file_schema

_SORT: Final = ["boot", "hub", "bus", "dir", "kind", "verdict", "reason", "peer"]
_FIRST: Final = {
    "rows": ([], "count_all"), "enveloped": ("origin", "count"), "count": ("count", "sum"),
    "cap_seq": ("cap_seq", "min"), "ts_ns": ("ts_ns", "min"),
    "last_cap_seq": ("cap_seq", "max"), "last_ns": ("ts_ns", "max"),
}  # fmt: skip
_AGAIN: Final = {name: (name, "sum" if how.startswith("count") else how) for name, (_, how) in _FIRST.items()}


class Summary:
    """The sums of the rows of one capture file, as its row groups come."""

    def __init__(self) -> None:
        self._parts = list[pa.Table]()
        self._schema: pa.Schema | None = None

    def widened(self, group: pa.Table) -> pa.Table:
        """Sum a group of rows (`schema.arrow_schema`), and return it with the columns of a file."""
        self._parts.append(_sums(group))
        self._schema = group.schema
        return _widened(group)

    def rows(self) -> pa.Table | None:
        """Return the last row group of the file, with the sums; None if no rows came."""
        if self._schema is None:
            return None
        sums = _by_sort(pa.concat_tables(self._parts), _AGAIN)
        topology = (self._schema.metadata or {}).get(META_TOPOLOGY.encode())
        if topology:
            sums = pa.concat_tables([sums, _nothing_of(sums, Kind.TOPOLOGY)])
        return _rows(sums, self._schema, topology)


def _sums(group: pa.Table) -> pa.Table:
    """Sum rows by sort. Peers are kept of ledgers only: frames may have many."""
    ledger = pc.equal(group["kind"], Kind.LEDGER.value)
    peer = pc.if_else(ledger, group["peer"], pa.scalar(None, pa.string()))
    return _by_sort(group.set_column(group.schema.get_field_index("peer"), "peer", peer), _FIRST)


def _by_sort(table: pa.Table, how: Mapping[str, tuple[object, str]]) -> pa.Table:
    grouped = table.group_by(_SORT, use_threads=False).aggregate(list(how.values()))
    return grouped.rename_columns([*_SORT, *how])


def _widened(group: pa.Table) -> pa.Table:
    schema = file_schema(group.schema)
    empty = pa.nulls(len(group), schema.field(CONTENTS).type)
    return group.append_column(schema.field(CONTENTS), empty).cast(schema)


def _nothing_of(sums: pa.Table, kind: Kind) -> pa.Table:
    """Make the sums of a kind of which nothing was recorded: at the first number and time of the file."""
    first = {name: pc.min(sums[name]).as_py() for name in ("boot", "cap_seq", "ts_ns")}
    none = {"hub": "", "bus": "", "dir": 0, "verdict": 0, "rows": 0, "enveloped": 0, "count": 0}
    last = {"last_cap_seq": first["cap_seq"], "last_ns": first["ts_ns"]}
    return pa.Table.from_pylist([{**first, **none, **last, "kind": kind.value}], schema=sums.schema)


def _rows(sums: pa.Table, of_rows: pa.Schema, topology: bytes | None) -> pa.Table:
    """Make a row of each sort: `count` is the sum, `cap_seq` and `ts_ns` the first, `contents` has the
    rest."""
    schema = file_schema(of_rows)
    inner = schema.field(CONTENTS).type
    fields = [_array(sums, field) for field in inner]
    columns = {
        CONTENTS: pa.StructArray.from_arrays(fields, fields=list(inner)),
        "kind": pa.array([Kind.CONTENTS.value] * len(sums), schema.field("kind").type),
    }
    filled = [*(name for name in _SORT if name != "kind"), "count", "cap_seq", "ts_ns"]
    columns |= {name: _array(sums, schema.field(name)) for name in filled}
    is_topology = pc.equal(sums["kind"], Kind.TOPOLOGY.value).combine_chunks()
    columns["payload"] = pc.if_else(
        is_topology, pa.scalar(topology, pa.binary()), pa.scalar(None, pa.binary())
    )
    columns["peer"] = pc.fill_null(columns["peer"], "")  # it may not be null
    return pa.table(
        [columns.get(field.name, pa.nulls(len(sums), field.type)) for field in schema], schema=schema
    )


def _array(sums: pa.Table, field: pa.Field) -> pa.Array:
    return sums[field.name].combine_chunks().cast(field.type)
