"""Files that are written first and then take the place of another: each writer has its own."""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bus.machine import files, partial
from bus.machine.files import replace_bytes, whole, write_new
from bus.machine.partial import ABANDONED_S, partial_of
from bus.machine.permissions import write_secret

ROUNDS = 50


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    with whole(path) as file:
        file.write(b"ours")
        file.flush()
        yield path


def put(path: Path) -> None:
    with whole(path) as file:
        file.write(b"ours")


WRITERS: dict[str, Callable[[Path], None]] = {
    "whole": put,
    "write_new": lambda path: write_new(path, b"ours"),
    "replace_bytes": lambda path: replace_bytes(path, b"ours"),
    "write_secret": lambda path: write_secret(path, "ours"),
}


def test_each_writer_of_a_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    assert len({partial_of(tmp_path / "new") for _ in range(ROUNDS)}) == ROUNDS
    assert partial_of(tmp_path / ("x" * 255)).name[-4:] == ".tmp"


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_with_the_same_number_of_a_process_keeps_what_it_has_written_so_far(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each container begins to count processes at 1: two took each other's piece."""
    path, others = tmp_path / "new", list[Path]()
    if name == "replace_bytes":
        path.write_bytes(b"old")

    def beside(wanted: Path) -> Path:
        """Return a name as another writer begins, which has one too."""
        other = partial_of(wanted)
        other.write_bytes(b"a piece of another")
        others.append(other)
        return partial_of(wanted)

    monkeypatch.setattr(files, "partial_of", beside)
    monkeypatch.setattr(partial, "partial_of", beside)
    WRITERS[name](path)
    assert path.read_bytes() == b"ours"
    assert [one.read_bytes() for one in others] == [b"a piece of another"]
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


def test_two_that_write_at_one_time_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with opened(path), opened(path):
        assert len(list(tmp_path.iterdir())) == 2
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("new", b"ours")]


def test_what_a_killed_process_left_is_deleted_once_it_is_old(tmp_path: Path) -> None:
    left, fresh = (partial_of(tmp_path / "n[e]w") for _ in range(2))
    other = partial_of(tmp_path / "new")
    for one in (left, fresh, other):
        one.write_bytes(b"a piece")
    for one in (left, other):
        os.utime(one, (time.time() - 2 * ABANDONED_S,) * 2)
    write_new(tmp_path / "n[e]w", b"whole")
    assert {one.name for one in tmp_path.iterdir()} == {fresh.name, other.name, "n[e]w"}


def test_what_nobody_of_us_wrote_is_left_alone_however_old(tmp_path: Path) -> None:
    for name in (".new.mine.tmp", ".new.yaml.tmp", ".new.tmp", "new.0123456789ab.tmp"):
        (tmp_path / name).write_bytes(b"mine")
        os.utime(tmp_path / name, (0, 0))
    write_new(tmp_path / "new", b"whole")
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("name", WRITERS)
def test_a_try_that_fails_leaves_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each left a piece with a name of its own: tries filled a disk that was nearly full."""
    path = tmp_path / "new"
    if name != "write_new":
        path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(Path, "replace", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            WRITERS[name](path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == ([] if name == "write_new" else [b"old"])
