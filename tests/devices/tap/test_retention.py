"""Retention: the finished files that are deleted, and those that never are."""

from pathlib import Path

from devices.tap.retention import Finished, Limits, expired, retain


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
    assert retain(tmp_path, "a", Limits(keep_bytes=1)) == (1, "")
    assert [path.exists() for path in paths] == [False, True, True, True]
    assert not paths[0].parent.exists()
    assert retain(tmp_path, "b", Limits(keep_bytes=1)) == (1, "")
    assert not (tmp_path / "capture" / "date=2026-01-01").exists()
