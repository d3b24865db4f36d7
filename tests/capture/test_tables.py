"""Tables: every row of a capture once, whatever is loaded, compacted, damaged or killed in between."""

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from capture import compact, files
from capture.reader import read
from capture.tables import Loaded, Table, load
from pipeline.input import sound
from tests.capture.divided import PARTS, planted
from tests.capture.killed import LATER, loading, table_of
from tests.helpers.steps import KILLED, Stepping


@pytest.fixture
def days(tmp_path: Path) -> Path:
    return files.days_directory(planted(tmp_path))


@pytest.fixture(params=["plain", "delta"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    if request.param == "delta":
        pytest.importorskip("deltalake")
    return table_of(request.param, tmp_path / "table")


def rows_of(days: Path) -> list[Any]:
    return sorted(read(days))


def added(found: list[Loaded]) -> int:
    return sum(one.added for one in found)


def test_a_second_load_adds_nothing(days: Path, table: Table, tmp_path: Path) -> None:
    assert added(list(load(days, table))) == 4 * PARTS
    assert rows_of(tmp_path / "table") == rows_of(days)
    assert list(load(days, table)) == []


def test_what_was_compacted_meanwhile_is_not_added_again(days: Path, table: Table, tmp_path: Path) -> None:
    list(load(days, table))
    before = rows_of(days)
    list(compact.compact(days, LATER))
    assert added(list(load(days, table))) == 0
    assert rows_of(tmp_path / "table") == before


def test_of_a_merged_file_only_the_new_rows_are_added(days: Path, table: Table, tmp_path: Path) -> None:
    every, aside = rows_of(days), tmp_path / "aside"
    aside.mkdir()
    half = [path for number, path in enumerate(files.listed(days)) if number % 2]
    for path in half:
        path.rename(aside / f"{files.gateway_of(path)}-{path.name}")
    list(load(days, table))
    for path in half:
        (aside / f"{files.gateway_of(path)}-{path.name}").rename(path)
    list(compact.compact(days, LATER))
    found = list(load(days, table))
    assert sum(one.parts for one in found) == 4
    assert rows_of(tmp_path / "table") == every
    assert added(list(load(days, table))) == 0


def test_a_damaged_file_is_named_and_left_out(days: Path, table: Table, tmp_path: Path) -> None:
    path = files.listed(days)[1]
    path.write_bytes(path.read_bytes()[:200])
    found = list(load(days, table))
    assert added(found) == 4 * PARTS - 1
    assert [line for one in found for line in one.bad if str(path) in line]


def test_a_compacted_plain_table_goes_on(days: Path, tmp_path: Path) -> None:
    table = table_of("plain", tmp_path / "table")
    kept = files.listed(days)[-1]
    aside = kept.rename(tmp_path / kept.name)
    list(load(days, table))
    list(compact.compact(tmp_path / "table", LATER))
    aside.rename(kept)
    assert added(list(load(days, table))) == 1
    assert rows_of(tmp_path / "table") == rows_of(days)


def test_a_file_that_comes_after_its_neighbours_were_merged_is_added(
    days: Path, table: Table, tmp_path: Path
) -> None:
    every, late = rows_of(days), files.listed(days)[1]
    aside = late.rename(tmp_path / late.name)
    list(compact.compact(days, LATER))
    list(load(days, table))
    aside.rename(late)
    assert added(list(load(days, table))) == 1
    assert rows_of(tmp_path / "table") == every


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["plain", "delta"])
def test_killed_at_twenty_moments(days: Path, tmp_path: Path, kind: str) -> None:
    """Each kill is at the next step, while or after a file is stored; the next load repairs everything."""
    if kind == "delta":
        pytest.importorskip("deltalake")
    every = rows_of(days)
    for steps in range(1, 21):
        where = tmp_path / f"table-{steps}"
        child = Stepping(loading, kind, str(days), str(where))
        child.reach(steps)
        assert child.kill() == KILLED
        assert added(list(load(days, table_of(kind, where)))) > 0
        assert rows_of(where) == every
        assert list(load(days, table_of(kind, where))) == []


def test_names_are_joined(days: Path, table: Table, tmp_path: Path) -> None:
    shutil.rmtree(files.names_directory(days), ignore_errors=True)
    for names in ("fridge\ntemp\n", "temp\ndoor\n"):
        files.names_directory(days).mkdir(exist_ok=True)
        (files.names_directory(days) / "gw-0.txt").write_text(names)
        list(load(days, table))
    found = (files.names_directory(tmp_path / "table") / "gw-0.txt").read_text()
    assert found == "fridge\ntemp\ndoor\n"


@pytest.fixture
def delta_table(days: Path, tmp_path: Path) -> Path:
    pytest.importorskip("deltalake")
    list(load(days, table_of("delta", tmp_path / "table")))
    return tmp_path / "table"


def test_a_compacted_delta_table_has_the_same_rows_in_few_files(days: Path, delta_table: Path) -> None:
    from capture import delta

    older = files.listed(delta_table)
    found = list(delta.compact(delta_table, LATER, compact.FILE_BYTES))
    assert [(one.files, one.made) for one in found] == [(PARTS, 1)] * 4
    assert len(files.listed(delta_table)) == 4 + len(older) - 4 * PARTS
    assert rows_of(delta_table) == rows_of(days)
    assert all(path.exists() for path in older)  # somebody may still be reading them
    assert not list(delta.compact(delta_table, LATER, compact.FILE_BYTES))
    assert added(list(load(days, table_of("delta", delta_table)))) == 0


def test_a_load_during_the_compaction_of_a_delta_table_loses_nothing(
    days: Path, delta_table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capture import delta

    late = files.listed(days)[0]
    kept = late.rename(late.with_name("aside"))
    shutil.rmtree(delta_table)
    list(load(days, table_of("delta", delta_table)))
    kept.rename(late)
    merged = compact.merged

    def slow(group: list[Path], target: Path) -> int:
        list(load(days, table_of("delta", delta_table)))
        return merged(group, target)

    monkeypatch.setattr("capture.delta.merged", slow)
    assert len(list(delta.compact(delta_table, LATER, compact.FILE_BYTES))) == 4
    assert rows_of(delta_table) == rows_of(days)


def test_a_delta_table_that_was_rewritten_is_not_counted_twice(days: Path, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    where = tmp_path / "table"
    list(load(days, table_of("delta", where)))
    log = deltalake.DeltaTable(str(where))
    assert log.to_pyarrow_dataset().count_rows() > len(rows_of(days))  # with the summaries
    log.optimize.compact()
    with pytest.raises(files.CaptureError, match="rewritten by another program"):
        rows_of(where)
    looked = sound.look(where, thorough=True)
    assert looked.bad == []
    assert looked.rows == len(rows_of(days))
    assert added(list(load(days, table_of("delta", where)))) == 0


def test_an_older_delta_table_gets_the_columns_that_are_new(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake = pytest.importorskip("deltalake")
    from capture import delta

    whole, where = delta.schema(), tmp_path / "table"
    with monkeypatch.context() as older:
        fields = [field for field in whole.fields if field.name != "contents"]
        older.setattr(delta, "schema", lambda: deltalake.Schema(fields))
        place = "/".join(files.listed(days)[0].parts[-3:-1])
        table_of("delta", where).add(place, files.listed(days)[:1])
    assert "contents" not in [field.name for field in deltalake.DeltaTable(str(where)).schema().fields]
    assert added(list(load(days, table_of("delta", where)))) == 4 * PARTS - 1
    found = deltalake.DeltaTable(str(where))
    assert "contents" in [field.name for field in found.schema().fields]
    assert rows_of(where) == rows_of(days)
