"""The summaries at the end of a capture's file: only those of groups of their own, and whole ones."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.parquet import ParquetFile, ParquetWriter

from capture.schema import CONTENTS, GATEWAY, Kind
from pipeline.input.summaries import summaries

COLUMNS = (
    "ts_ns", "boot", "cap_seq", "hub", "bus", "peer", "dir", "count", "verdict", "reason", "payload", "kind",
)  # fmt: skip
WHOLE = {"first": 1, "last": 2}


def group(*rows: tuple[int, int, Any]) -> pa.Table:
    """Return rows: number, kind and contents."""
    made = [dict.fromkeys(COLUMNS, 0) | {"cap_seq": n, "kind": kind, CONTENTS: one} for n, kind, one in rows]
    contents = pa.struct([("first", pa.int64()), ("last", pa.int64())])
    return pa.Table.from_pylist(
        made, pa.schema([*((name, pa.int64()) for name in COLUMNS), (CONTENTS, contents)])
    )


def found(directory: Path, *groups: pa.Table) -> list[tuple[int, str]]:
    """Return the numbers of the summaries in a file with these groups, each with its gateway."""
    path = directory / "gateway=gw" / "x.parquet"
    path.parent.mkdir()
    with ParquetWriter(path, groups[0].schema) as writer:
        for one in groups:
            writer.write_table(one)
    with ParquetFile(path) as file:
        return [(row["cap_seq"], row[GATEWAY]) for row in summaries(path, file)]


def test_summaries_are_rows_of_groups_that_have_nothing_else(tmp_path: Path) -> None:
    own, frame = int(Kind.CONTENTS), int(Kind.FRAME)
    mixed = group((1, frame, None), (2, own, WHOLE))
    alone = group((3, own, WHOLE), (4, own, WHOLE | {"last": None}), (5, own, None))
    assert found(tmp_path, group((0, frame, None)), mixed, alone) == [(3, "gw")]


def test_a_file_may_have_none(tmp_path: Path) -> None:
    assert found(tmp_path, group((0, int(Kind.FRAME), None))) == []


def test_a_file_of_a_version_without_them_has_none(tmp_path: Path) -> None:
    older = group((0, int(Kind.CONTENTS), WHOLE)).drop_columns(["verdict"])
    assert found(tmp_path, older) == []
