"""The spool of an upload: it takes each row once, whatever is deleted, compacted, damaged or started."""

import errno
import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from capture import compact, files
from devices.upload.spool import Spool, SpoolGone
from tests.capture.divided import PARTS, planted
from tests.devices.upload.captures import GATEWAY, LATER, mine, rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return planted(tmp_path)


def spool_of(root: Path, limit_bytes: int = 1 << 30) -> Spool:
    spool = Spool(root, "copies", GATEWAY, limit_bytes)
    assert spool.open()
    return spool


def test_each_file_of_its_gateway_waits_once(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    spool.look()
    assert rows(spool.waiting()) == rows(mine(root))
    assert [spool.place(path).count("/") for path in spool.waiting()] == [2] * PARTS


def test_what_the_recorder_deletes_still_waits(root: Path) -> None:
    spool, before = spool_of(root), rows(mine(root))
    spool.look()
    for path in mine(root):
        path.unlink()
    spool.look()
    assert rows(spool.waiting()) == before


def test_of_a_merged_file_only_new_rows_wait(root: Path) -> None:
    before, spool = rows(mine(root)), spool_of(root)
    last = mine(root)[-1]
    aside = last.rename(root / last.name)
    spool.look()
    aside.rename(last)
    list(compact.compact(files.days_directory(root), LATER))
    spool.look()
    assert rows(spool.waiting()) == before


def test_what_was_stored_does_not_come_again_after_a_restart(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    for path in spool.waiting():
        spool.done(path)
    assert list(spool.directory.glob("date=*")) == []
    spool.close()
    spool = spool_of(root)
    spool.look()
    assert spool.waiting() == []


def test_a_file_that_was_taken_before_a_kill_is_not_taken_again(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    (spool.directory / "taken.json").unlink()  # the kill came before it was written
    spool.close()
    before = spool.waiting()
    spool = spool_of(root)
    list(compact.compact(files.days_directory(root), LATER))
    spool.look()
    assert spool.waiting() == before


def test_beyond_its_bound_the_oldest_is_given_up_and_counted(root: Path) -> None:
    spool = spool_of(root, limit_bytes=sum(path.stat().st_size for path in mine(root)[-2:]))
    spool.look()
    waiting = spool.waiting()
    spool.bound(busy=None)
    assert spool.waiting() == waiting[-2:]
    assert spool.dropped == PARTS - 2
    spool.look()
    assert spool.waiting() == waiting[-2:]


@pytest.mark.parametrize("how", ["deleted", "moved", "made anew"])
def test_a_spool_that_goes_while_it_is_open_is_told_with_its_files(root: Path, how: str) -> None:
    spool = spool_of(root)
    spool.look()
    spool.done(spool.waiting()[0])
    if how == "moved":
        spool.directory.rename(root.with_name("away"))
    else:
        shutil.rmtree(spool.directory)
    if how == "made anew":
        spool.directory.mkdir()
    words = f"the spool was deleted or moved away, with {PARTS - 1} files that waited: {spool.directory}"
    with pytest.raises(SpoolGone, match=words):
        spool.look()
    spool.close()
    assert spool.open()
    spool.look()
    assert rows(spool.waiting()) == rows(mine(root))
    assert spool.deleted == PARTS - 1


def test_a_waiting_file_that_somebody_deletes_is_counted(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    spool.waiting()[0].unlink()
    for _ in range(2):
        spool.look()
        assert spool.deleted == 1
    assert len(spool.waiting()) == PARTS - 1


def test_the_file_that_is_being_stored_is_not_given_up(root: Path) -> None:
    spool = spool_of(root, limit_bytes=1)
    spool.look()
    first = spool.waiting()[0]
    spool.bound(busy=first)
    assert spool.waiting() == [first]


def test_a_damaged_file_is_counted_once_and_stays(root: Path) -> None:
    path = mine(root)[1]
    path.write_bytes(path.read_bytes()[:200])
    spool = spool_of(root)
    spool.look()
    spool.look()
    assert (len(spool.waiting()), spool.damaged) == (PARTS - 1, 1)
    assert path.exists()


def test_a_waiting_file_that_is_damaged_is_given_up_and_the_spool_opens_again(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    path = spool.waiting()[1]
    path.write_bytes(path.read_bytes()[:200])  # and so is the recorder's: they are one
    spool.close()
    spool = spool_of(root)
    assert (len(spool.waiting()), spool.damaged) == (PARTS - 1, 1)
    spool.look()
    assert (len(spool.waiting()), spool.damaged) == (PARTS - 1, 1)


def test_a_spool_that_could_not_be_opened_is_free(root: Path) -> None:
    spool = Spool(root, "copies", GATEWAY, 1)
    (spool.directory / ".making" / "what no process made").mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(OSError, match="what no process made"):
            spool.open()
    (spool.directory / ".making" / "what no process made").rmdir()
    assert spool.open()


def test_a_file_that_cannot_be_taken_stops_no_other_and_none_is_counted_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, link = mine(root), os.link
    paths[1].write_bytes(paths[1].read_bytes()[:200])

    def refuse(found: Path, target: Path) -> None:
        if found == paths[0]:
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        link(found, target)

    spool = spool_of(root)
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many links"):
                spool.look()
            assert (len(spool.waiting()), spool.damaged) == (PARTS - 2, 1)
    spool.look()
    assert (len(spool.waiting()), spool.damaged) == (PARTS - 1, 1)


def test_only_one_process_has_a_spool(root: Path) -> None:
    spool = spool_of(root)
    other = Spool(root, "copies", GATEWAY, 1)
    assert not other.open()
    spool.close()
    assert other.open()


def test_runs_that_have_gone_are_forgotten(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    for path in [*mine(root), *spool.waiting()]:
        path.unlink()
    spool.look()
    assert (spool.directory / "taken.json").read_text() == "{}"


def test_a_directory_without_captures_has_nothing_to_take(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    spool.look()
    assert spool.waiting() == []


def test_rows_of_a_damaged_list_of_the_taken_are_stored_again_not_lost(root: Path) -> None:
    spool = spool_of(root)
    spool.look()
    for path in spool.waiting():
        spool.done(path)
    (spool.directory / "taken.json").write_text('{"x": 3}')
    spool.close()
    spool = spool_of(root)
    spool.look()
    assert rows(spool.waiting()) == rows(mine(root))
