"""The class archives in the cache: the last few that were used stay."""

import os
import time
from pathlib import Path

import pytest

from pipeline.engine import archives
from pipeline.engine.archives import KEPT, in_use, store
from pipeline.engine.java import Java


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(archives, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(archives, "needed", list)
    return tmp_path


def made(cache: Path, name: str, age_s: float) -> Path:
    file = cache / name
    file.write_text(name)
    os.utime(file, (time.time() - age_s,) * 2)
    return file


def test_a_new_archive_takes_the_place_of_the_one_that_was_not_used_for_longest(cache: Path) -> None:
    old = [made(cache, f"spark-{n}.jsa", 1000.0 * n) for n in range(1, KEPT + 3)]
    others = [made(cache, name, 1e7) for name in ("jars", "spark", "other.jsa")]
    written = made(cache, "spark-new.77.tmp", 0)
    target = cache / "spark-new.jsa"
    store(written, target)
    assert sorted(cache.glob("spark-*")) == sorted([*old[: KEPT - 1], target])
    assert all(one.exists() for one in others)


def test_an_archive_that_is_used_stays(cache: Path) -> None:
    java = Java(Path("/java"), "17.0.15")
    mine = archives.archive(java)
    assert in_use(java) is None
    made(cache, mine.name, 1e7)
    for n in range(KEPT):
        made(cache, f"spark-{n}.jsa", 1e6)
    assert in_use(java) == mine
    store(made(cache, "spark-new.tmp", 0), cache / "spark-new.jsa")
    assert mine.exists()


def test_what_nobody_finished_is_removed_and_what_is_being_written_stays(cache: Path) -> None:
    stale, fresh = made(cache, "spark-a.1.tmp", 1e6), made(cache, "spark-b.2.tmp", 10.0)
    store(made(cache, "spark-new.tmp", 0), cache / "spark-new.jsa")
    assert not stale.exists()
    assert fresh.exists()


def test_a_spark_that_is_installed_anew_at_the_same_place_has_another_archive(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, jar = Java(Path("/java"), "17.0.15"), made(cache, "spark-core.jar", 1000.0)
    monkeypatch.setattr(archives, "needed", lambda: [jar])
    before = archives.archive(java)
    assert archives.archive(java) == before
    made(cache, "spark-core.jar", 0)
    assert archives.archive(java) != before
