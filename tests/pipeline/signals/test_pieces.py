"""Work on pieces of a capture and tables of its values: each row once, however the files are divided."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa
from pyarrow.parquet import ParquetFile, write_table

from bus.names import Names
from capture.files import listed as listed_files
from capture.files import names_directory
from capture.stores import store_of
from pipeline.errors import PipelineError
from pipeline.input.span import Span
from pipeline.signals.output import check, is_of_table
from pipeline.signals.pieces import Piece, Task, divided, listed
from pipeline.signals.table import Files, message_of
from pipeline.signals.wanted import Wanted
from pipeline.signals.work import Long, Work
from tests.pipeline.signals.signals_support import MS, NAMES, START_NS, Seen, blocks_of, capture_of

DAY_MS = 86_400_000
ALL = Wanted(names=Names(NAMES))


def values(count: int) -> list[Seen]:
    """Return values of two messages, over two days."""
    later = (DAY_MS // 2, 0)
    return [
        Seen(n + later[n < count // 2], f"plant/{('temp', 'state')[n % 2]}", b"%d" % n) for n in range(count)
    ]


def done(
    root: Path, work: Work, pieces: Sequence[Piece] | None = None, wanted: Wanted = ALL
) -> list[dict[str, object]]:
    place = str(root / "capture")
    found = listed(place, Span(wanted.from_ns, wanted.to_ns))
    assert found is not None
    task = Task(place, found[1], wanted, work)
    return [
        row for piece in pieces or divided(found[0]) for batch in task(piece) for row in batch.to_pylist()
    ]


def test_each_row_is_in_one_piece(tmp_path: Path) -> None:
    capture_of(tmp_path, {"gw-a": values(20), "gw-b": values(10)}, files_each=3)
    names = sorted((listed(str(tmp_path / "capture"), Span()) or ({}, False))[0])
    whole = done(tmp_path, Long())
    assert len(whole) == 30
    parts = [Piece(n, (name,), part, 3) for n, name in enumerate(names) for part in range(3)]
    assert sorted(map(str, done(tmp_path, Long(), parts))) == sorted(map(str, whole))
    some = done(tmp_path, Long(), wanted=Wanted(from_ns=START_NS + 2 * MS, to_ns=START_NS + 5 * MS))
    assert sorted(float(str(row["value"])) for row in some) == [2, 2, 3, 3, 4, 4]


def test_small_files_are_read_together_and_large_ones_in_parts() -> None:
    sizes = {"a": 1 << 20, "b": 1 << 20, "c": 5 << 20, "d": 1}
    assert divided(sizes) == [
        Piece(0, ("a", "b")),
        *(Piece(part + 1, ("c",), part, 3) for part in range(3)),
        Piece(4, ("d",)),
    ]
    assert divided({}) == []


def test_a_place_that_pyarrow_does_not_know_is_left_to_the_engine() -> None:
    assert listed("hdfs:///plant/capture", Span()) is None


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_table_has_each_value_by_day_and_gateway(tmp_path: Path, is_wide: bool) -> None:
    capture_of(tmp_path, {"gw-a": values(20), "gw-b": values(10)})
    out = str(tmp_path / "table")
    sums = done(tmp_path, Files(out, "1", is_wide, 1000))
    assert sum(row["rows"] for row in sums) == 30  # type: ignore[misc]
    made = store_of(out).below()
    assert all(map(is_of_table, made))
    assert len({name.rpartition("/")[0].partition("date=")[2] for name in made}) == 4
    done(tmp_path, Files(out, "1", is_wide, 1000))  # a task that is repeated
    assert store_of(out).below().keys() == made.keys()
    find = (
        f"read_parquet('{out}/{'*/' * is_wide}*/*/*.parquet', hive_partitioning = true, union_by_name = true)"
    )
    if is_wide:
        rows = duckdb.sql(
            f"SELECT gateway, ts_ns, coalesce(temp, state) FROM {find} ORDER BY 1, 3"
        ).fetchall()
    else:
        rows = duckdb.sql(f"SELECT gateway, ts_ns, value FROM {find} ORDER BY 1, 3").fetchall()
    assert [(gateway, value) for gateway, _, value in rows] == [
        *(("gw-a", float(n)) for n in range(20)), *(("gw-b", float(n)) for n in range(10)),
    ]  # fmt: skip
    assert rows[1][1] == START_NS + MS


def test_a_wide_table_is_named_after_the_message() -> None:
    (block,) = blocks_of([Seen(1, "plant/temp", b"1")], Wanted())
    for pattern, name in {
        "car/EEC1/17": "EEC1",
        "plant/temp": "temp",
        "a/..": "_",
        "a/b c": "b_c",
        "/": "temp",
    }.items():
        assert message_of(block._replace(pattern=pattern)) == name


def test_a_wide_table_has_all_values_of_one_time(tmp_path: Path) -> None:
    """Messages that came together have one time; what stands in them has any name."""
    same = [Seen(1, "plant/temp", b"%d" % n) for n in range(3)] + [Seen(1, "plant/state", b"on")]
    alone = [Seen(2, "plant/temp", b"9"), Seen(2, "plant/state", b"off")]
    named = [
        {"ts_ns": 1, "Bus": 2, "pattern": "p", "date": 3, "gateway": 4, "level": "low", "level_text": 5},
        {"ts_ns": 6, "Bus": 7, "pattern": "q", "date": 8, "gateway": 9, "level": "top", "level_text": 10},
    ]
    units = [{"v": 1.5, "unit": "bar"}, {"v": 2.5, "unit": "mbar"}]
    gps = [Seen(3, "gps", json.dumps(one).encode()) for one in named]
    tank = [Seen(4, "tank/level", json.dumps(one).encode()) for one in units]
    capture_of(tmp_path, {"gw-a": same + alone + gps + tank}, files_each=1)
    done(tmp_path, Files(str(tmp_path / "table"), "1", True, 1000))
    (plant,), (place,), (level,) = (
        (tmp_path / "table" / one).rglob("*.parquet") for one in ("plant", "gps", "tank")
    )
    rows = ParquetFile(plant).read(["ts_ns", "temp", "state_text"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        *((START_NS + MS, float(n), None) for n in range(3)), (START_NS + MS, None, "on"),
        (START_NS + 2 * MS, 9.0, "off"),
    ]  # fmt: skip
    found = ParquetFile(place).read().to_pylist()
    assert [row["ts_ns"] for row in found] == [START_NS + 3 * MS] * 2
    names = ("ts_ns_", "Bus_", "pattern_text", "date_", "gateway_", "level_text", "level_text_")
    assert [[row[name] for name in names] for row in found] == [list(one.values()) for one in named]
    assert ParquetFile(level).read(["level"]).to_pylist() == [{"level": 1.5}, {"level": 2.5}]


def test_only_a_table_of_ours_is_replaced(tmp_path: Path) -> None:
    check(str(tmp_path / "none"))
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(PipelineError, match=r"letter\.txt is no part of a table of signals"):
        check(str(tmp_path))


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_the_files_of_a_capture_are_no_table_that_is_replaced(tmp_path: Path, is_rewritten: bool) -> None:
    """They lie by day and gateway as those of a table do, and would be deleted."""
    capture_of(tmp_path, {"gw-a": values(4)}, files_each=1)
    shutil.rmtree(names_directory(tmp_path / "capture"))
    for path in listed_files(tmp_path) if is_rewritten else ():
        path.rename(path.with_name("part-00000.parquet"))  # as a program that optimizes a Delta table
    for place in (tmp_path, tmp_path / "capture"):
        with pytest.raises(PipelineError, match="is no part of a table of signals"):
            check(str(place))


def test_a_table_of_windows_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "date=2026-11-21" / "gateway=gw-a" / "part-00000.parquet"
    path.parent.mkdir(parents=True)
    write_table(pa.table({"start_ns": [1], "bus": ["b"], "pattern": ["p"], "signal": ["s"]}), path)
    check(str(tmp_path))
