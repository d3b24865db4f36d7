"""A lock on a file: one holder at a time, and free again when it is released."""

from pathlib import Path

import pytest

from devices.disk import FileLock


def test_one_at_a_time_has_a_lock(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "db"), FileLock(tmp_path / "db")
    first.take()
    with pytest.raises(BlockingIOError):
        second.take()
    first.release()
    first.release()
    second.take()
    second.release()
    assert [path.name for path in tmp_path.iterdir()] == ["db.lock"]


def test_a_lock_needs_its_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "nowhere" / "db").take()
