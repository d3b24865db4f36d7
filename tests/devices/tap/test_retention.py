"""Retention: the finished files that are deleted, and those that never are."""

import os
import time
from pathlib import Path

import pytest

from capture.files import capture_file, day_of, name_of
from devices.tap.retention import Ages, Finished, Limits, expired, retain


def test_what_retention_lets_go(tmp_path: Path) -> None:
    found = [Finished(tmp_path / str(n), 100, 1000.0 + n) for n in range(5)]
    assert expired(found, Limits(), 9e9) == []
    assert expired(found, Limits(keep_bytes=500), 1010) == []
    assert expired(found, Limits(keep_bytes=301), 1010) == found[:2]
    assert expired(found, Limits(keep_bytes=1), 1010) == found[:4]
    assert expired(found, Limits(keep_s=7.5), 1010) == found[:3]
    assert expired(found, Limits(keep_bytes=499, keep_s=8.5), 1010) == found[:2]


def test_retention_takes_one_gateway_s_files_and_empty_days(tmp_path: Path) -> None:
    paths = [
        tmp_path / "capture" / f"date=2026-01-0{day}" / f"gateway={gateway}" / f"{day}-0.parquet"
        for day in (1, 2)
        for gateway in ("a", "b")
    ]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 10)
    assert retain(tmp_path, "a", Limits(keep_bytes=1), Ages()) == (1, "")
    assert [path.exists() for path in paths] == [False, True, True, True]
    assert not paths[0].parent.exists()
    assert retain(tmp_path, "b", Limits(keep_bytes=1), Ages()) == (1, "")
    assert not (tmp_path / "capture" / "date=2026-01-01").exists()


def finished(root: Path, boot: int, number: int, at_s: float) -> Path:
    """Make a finished file of a run that began at `boot` by its clock."""
    path = capture_file(root, day_of(int(at_s * 1e9)), "gw", name_of(boot, number))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    os.utime(path, (at_s, at_s))
    return path


@pytest.mark.parametrize("boots", [(12 * 10**9, 11 * 10**9), (11 * 10**9, 12 * 10**9)])
def test_of_runs_that_all_began_in_1970_the_one_of_today_stays(
    tmp_path: Path, boots: tuple[int, int]
) -> None:
    now_s = time.time()
    old = [finished(tmp_path, boots[0], number, now_s - 1e6 + number) for number in range(3)]
    first = finished(tmp_path, boots[1], 0, 100.0)  # before its clock was set
    new = [first, *(finished(tmp_path, boots[1], number, now_s - 60 + number) for number in (1, 2))]
    assert retain(tmp_path, "gw", Limits(keep_bytes=30), Ages()) == (3, "")
    assert [path.exists() for path in (*old, *new)] == [False] * 3 + [True] * 3


def test_a_file_that_was_seen_does_not_age_by_a_step_of_the_clock() -> None:
    ages, step_s, day_s = Ages(), 1.8e9, 86_400.0
    one, other = (Finished(Path(name), 100, 100.0) for name in ("one", "other"))
    limits = Limits(keep_s=day_s)
    assert expired(ages.steady([one, other], 101.0, 5.0), limits, 5.0) == []
    after = ages.steady([one, other], 101.0 + step_s, 6.0)
    assert expired(after, limits, 6.0) == []
    assert expired(after, limits, 6.0 + day_s) == after[:1]  # the newest stays
    back = ages.steady([one, Finished(Path("new"), 100, 200.0 + step_s)], 50.0, 7.0)
    assert expired(back, limits, 7.0) == []
    assert expired(back, limits, 7.0 + day_s) == back[:1]
