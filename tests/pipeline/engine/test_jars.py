"""Spark's installed jars: those that a session gets, and the copies that can be archived."""

import os
import zipfile
from pathlib import Path, PurePosixPath

import pytest

pytest.importorskip("pyspark")

from pipeline.engine import jars


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "buscoupler" / "jars"


def names(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as jar:
        return set(jar.namelist())


def is_signed(path: Path) -> bool:
    return any(PurePosixPath(name).suffix in (".SF", ".RSA", ".DSA", ".EC") for name in names(path))


def test_no_signed_jar_is_left_once_there_are_copies(cache: Path) -> None:
    assert any(map(is_signed, map(Path, jars.class_path().split(os.pathsep))))
    jars.unsign()
    taken = list(map(Path, jars.class_path().split(os.pathsep)))
    assert not any(map(is_signed, taken))
    assert [path.name for path in taken] == [path.name for path in jars.needed()]


def test_a_copy_has_all_but_the_signatures(cache: Path) -> None:
    jars.unsign()
    for copy in cache.iterdir():
        gone = names(jars.spark_home() / "jars" / copy.name) - names(copy)
        assert gone
        assert {PurePosixPath(name).suffix for name in gone} <= {".SF", ".RSA", ".DSA", ".EC"}


def test_a_copy_is_made_once_for_archives_know_a_jar_by_its_time(cache: Path) -> None:
    jars.unsign()
    made = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    jars.unsign()
    assert made == {path: path.stat().st_mtime_ns for path in cache.iterdir()}


def test_cluster_managers_clients_come_where_one_is_asked_for() -> None:
    alone, managed = set(jars.needed()), set(jars.needed(managed=True))
    assert alone < managed
    assert any(path.name.startswith("spark-kubernetes") for path in managed)
    assert any(path.name.startswith("spark-sql") for path in alone)


def test_jars_that_most_classes_are_from_come_first() -> None:
    """Java looks into one jar after the other for each class: Spark's own are last by their names."""
    found = [path.name for path in jars.needed()]
    of_spark = [name for name in found if name.startswith("spark-")]
    assert of_spark
    assert set(of_spark) <= set(found[: len(of_spark) + 2])
    assert len(set(found)) == len(found)
