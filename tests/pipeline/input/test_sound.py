"""Files that cannot be read are named, and left out if that is asked for; foreign files are passed by."""

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from capture import files, schema
from capture.compact import compact
from pipeline.input import sample
from pipeline.input.sound import look, passed_by, unknown
from pipeline.input.span import Span
from tests.capture.divided import divide
from tests.pipeline.engines import QUICK
from tests.pipeline.processes import in_turn
from tests.rigs.planted import Plan, generate

WORDS = ("rates", "--json", "--quiet", "--seconds", "1000", *QUICK)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    generate(directory, Plan(rows=9_000, takeovers=0))
    return directory


@pytest.fixture
def here(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "capture")
    return tmp_path / "capture"


def test_summaries_which_are_about_whole_files_are_read_for_all_of_their_rows_alone(whole: Path) -> None:
    days = files.days_directory(whole)
    assert (
        len(look(days, thorough=False).summaries)
        > len(look(days, False, Span(gateways=("gw-1",))).summaries)
        > 0
    )
    assert not look(days, False, Span(from_ns=0)).summaries


def segment(here: Path, gateway: str = "gw-1") -> Path:
    (found,) = here.glob(f"capture/date=*/gateway={gateway}/*.parquet")
    return found


def test_a_late_file_between_the_parts_of_a_merged_one_is_no_copy(here: Path, tmp_path: Path) -> None:
    divide(segment(here), 3)
    days = files.days_directory(here)
    late = parts_of(here)[1]
    aside = late.rename(tmp_path / late.name)
    list(compact(days, "2999-01-01"))
    aside.rename(late)
    assert look(days, thorough=False).bad == []
    copy = late.with_name(late.name.replace("-0", "-9", 1))
    shutil.copy(late, copy)
    (bad,) = look(days, thorough=False).bad
    assert f"has rows that are in {late} too" in bad.text


def parts_of(here: Path, gateway: str = "gw-1") -> list[Path]:
    return sorted(here.glob(f"capture/date=*/gateway={gateway}/*.parquet"))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def damaged_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(200, min(2200, len(data) // 2)):
        data[at] ^= 0x5A
    path.write_bytes(bytes(data))


def later(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    metadata = {**table.schema.metadata, schema.META_VERSION.encode(): b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def no_capture(path: Path) -> None:
    pq.write_table(pq.ParquetFile(path).read().replace_schema_metadata({}), path)


WAYS = (truncated, empty, damaged_page, later, no_capture)


@pytest.mark.parametrize("damage", WAYS, ids=lambda damage: damage.__name__)
def test_each_sort_of_damage_is_found_and_named(here: Path, damage: Callable[[Path], None]) -> None:
    assert look(here, thorough=True).bad == []
    damage(segment(here))
    (bad,) = look(here, thorough=True).bad
    assert bad.path == segment(here)
    assert bad.text.startswith(f"{bad.path}: ")
    quick = look(here, thorough=False).bad
    assert quick == ([] if damage is damaged_page else [bad])


def test_a_copy_is_told_with_both_files(here: Path) -> None:
    path = segment(here)
    copy = path.parent.parent.parent / "date=2031-01-01" / path.parent.name / path.name
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    (bad,) = look(here, thorough=False).bad
    assert {str(path), str(copy)} <= set(bad.text.replace(":", " ").split())


def test_what_is_no_file_of_a_capture_is_passed_by(here: Path) -> None:
    assert passed_by(here / "capture") == ""
    (segment(here).parent / "note.txt").write_text("mine")
    (here / "capture" / "_names").mkdir(exist_ok=True)
    (here / "capture" / "_names" / "gw.txt").write_text("fridge\n")
    assert (
        passed_by(here / "capture")
        == f"passed by what is no file of a capture: {segment(here).parent}/note.txt"
    )
    (here / "capture" / "note.txt").write_text("mine")
    assert passed_by(here / "capture").endswith("and 1 more")


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_rest_is_analysed_and_what_was_left_out_is_counted(here: Path, tmp_path: Path) -> None:
    (segment(here).parent / "note.txt").write_text("mine")
    damaged, rest = (shutil.copytree(here, tmp_path / name) for name in ("damaged", "rest"))
    damaged_page(segment(damaged))
    segment(rest).unlink()
    asked = [str(here)], [str(damaged)], [str(damaged), "--skip-bad"], [str(rest)]
    whole, refused, skipped, without = in_turn(*([*WORDS, *words] for words in asked))
    assert (whole.status, "passed by" in whole.said) == (0, True)
    assert refused.status == 1
    assert f"{segment(damaged)}: unreadable" in refused.said
    assert (skipped.status, "left out 1 of 4 files (--skip-bad)" in skipped.said) == (3, True)
    assert skipped.tables == without.tables
    assert skipped.tables != whole.tables


def test_without_a_sound_file_nothing_is_analysed(here: Path) -> None:
    for path in files.listed(here):
        truncated(path)
    (done,) = in_turn([*WORDS, str(here), "--skip-bad"])
    assert done.status == 1
    assert "no file is left" in done.said


PARTS = 250
"""Of each of four gateways: a thousand segments."""


@pytest.mark.skipif(not find_spec("pysail"), reason="no pysail")
@pytest.mark.timeout(300)
def test_of_a_thousand_segments_the_sound_ones_are_analysed(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    generate(damaged, Plan(rows=60_000, takeovers=0))
    for path in files.listed(damaged):
        divide(path, PARTS)
    count = len(files.listed(damaged))
    assert count >= 990  # the last of a gateway may be missing
    rest = shutil.copytree(damaged, tmp_path / "rest")
    bad = dict(zip(WAYS, parts_of(damaged)[PARTS // 2 :], strict=False))
    for damage, path in bad.items():
        damage(path)
        (rest / path.relative_to(damaged)).unlink()
    skipped, without = in_turn([*WORDS, str(damaged), "--skip-bad"], [*WORDS, str(rest)])
    assert (skipped.status, f"left out {len(WAYS)} of {count} files" in skipped.said) == (3, True)
    assert [path for path in bad.values() if f"{path}: " not in skipped.said] == []
    assert (without.status, without.tables, "left out" in without.said) == (0, skipped.tables, False)
    assert any(without.tables.values())


def test_a_directory_that_names_another_gateway_than_its_files_is_refused(tmp_path: Path) -> None:
    sample.write(tmp_path)
    (mine,) = (tmp_path / "capture").glob("*/gateway=gw")
    shutil.copytree(mine, mine.with_name("gateway=gw-copy"))
    looked = look(tmp_path / "capture", thorough=False)
    assert [one.path.parent.name for one in looked.bad] == ["gateway=gw-copy"]
    assert "recorded by gateway gw, not by gw-copy, as its directory says" in looked.bad[0].text


def test_a_gateway_that_a_capture_lacks_is_told(tmp_path: Path) -> None:
    sample.write(tmp_path)
    assert [*unknown((), tmp_path), *unknown(("gw",), tmp_path)] == []
    assert [*unknown(("gw", "gw-x"), tmp_path)] == ["--gateway gw-x: the capture has no such gateway, but gw"]
