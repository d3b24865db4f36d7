"""The files of names beside a capture."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capture import names
from capture.files import CaptureError, days_directory


def test_names_of_all_gateways_are_taken_together(tmp_path: Path) -> None:
    assert names.beside(tmp_path) == []
    assert names.add(tmp_path, "gw-a", ["fridge", "7", "temp"])
    assert names.add(tmp_path, "gw-b", ["fridge", "door"])
    assert set(names.beside(tmp_path)) == {"fridge", "7", "temp", "door"}


def test_names_are_only_added(tmp_path: Path) -> None:
    assert names.add(tmp_path, "gw", ["fridge"])
    before = (tmp_path / "_names" / "gw.txt").stat()
    assert not names.add(tmp_path, "gw", ["fridge"])
    assert (tmp_path / "_names" / "gw.txt").stat().st_ino == before.st_ino
    assert names.add(tmp_path, "gw", ["temp"])
    assert names.beside(tmp_path) == ["fridge", "temp"]
    assert [path.name for path in (tmp_path / "_names").iterdir()] == ["gw.txt"]


def test_recorders_of_one_gateway_lose_no_name(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: names.add(tmp_path, "gw", [f"n{n}"]), range(100)))
    assert set(names.beside(tmp_path)) == {f"n{n}" for n in range(100)}


def test_a_file_above_the_bound_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "FILE_BYTES", 20)
    names.add(tmp_path, "gw", ["a" * 10, "b" * 10])
    assert names.beside(tmp_path) == []
    names.add(tmp_path, "gw", ["c"])
    assert names.beside(tmp_path) == ["c"]


@pytest.mark.parametrize(("content", "text"), [(b"\xff", "not UTF-8"), (b"a//b", "is empty")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "_names").mkdir()
    (tmp_path / "_names" / "gw.txt").write_bytes(content)
    with pytest.raises(CaptureError, match=f"gw.txt.*{text}"):
        names.beside(tmp_path)
    with pytest.raises(CaptureError, match="No such file"):
        names.read(days_directory(tmp_path) / "nowhere.txt")
