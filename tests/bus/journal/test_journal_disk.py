"""A journal on a disk that is full, or fails."""

from errno import EIO, ENOSPC

import pytest

from bus.journal.journal import DAMAGED, EXPIRED, FULL, Policy
from tests.bus.journal.support import (
    END,
    Clock,
    append,
    append_each,
    disk,
    everything,
    numbered,
    opened,
    segments,
)


@pytest.mark.parametrize("operation", ["open", "pwrite", "sync", "sync_directory"])
@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("cuts", [False, True])
def test_a_disk_that_fails_keeps_nothing_of_an_append_and_the_next_one_goes_on(
    operation: str, before: int, cuts: bool
) -> None:
    files = disk()
    journal = opened(files)
    if before:
        append(journal, numbered(before))
    files.fails = {operation} if cuts else {operation, "truncate"}
    for _ in range(3):
        if operation in ("open", "sync_directory") and before:
            break  # they are not needed
        with pytest.raises(OSError, match="Input/output error") as caught:
            append(journal, [b"lost"])
        assert caught.value.errno == EIO
        assert journal.next == before + 1
    files.fails = set()
    append(journal, [b"kept"])
    wanted = dict(enumerate([*numbered(before), b"kept"], 1))
    assert everything(journal) == wanted
    files.cut()
    journal = opened(files)
    assert everything(journal) == wanted
    assert journal.losses[END][DAMAGED] == 0
    assert len(segments(files)) <= 2


def test_a_full_disk_is_an_error_and_the_journal_goes_on_when_there_is_room() -> None:
    files = disk()
    journal = opened(files)
    append(journal, numbered(3))
    files.capacity = sum(files.listing("/j").values()) + 50
    for _ in range(3):
        with pytest.raises(OSError, match="No space") as caught:
            append(journal, numbered(3))
        assert caught.value.errno == ENOSPC
    journal.acknowledge(END, [(1, 1)])
    files.capacity = 1 << 30
    append(journal, numbered(3))
    assert list(everything(journal)) == [1, 2, 3, 4, 5, 6]
    assert len(segments(files)) == 1


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("origin", [None, (5, 1)])
def test_a_disk_that_a_journal_has_filled_takes_more_once_all_have_what_is_in_it(
    again: bool, origin: tuple[int, int] | None
) -> None:
    files = disk()
    journal = opened(files)
    files.capacity = sum(files.listing("/j").values()) + 50_000
    with pytest.raises(OSError, match="No space"):
        append_each(journal, 10_000)
    with pytest.raises(OSError, match="No space"):
        append(journal, numbered(1))  # nobody has any of it
    if again:
        journal.close()
        journal = opened(files)
    before = journal.next
    journal.acknowledge(END, [(1, before - 1)])
    append(journal, numbered(3), origin=origin)
    assert list(everything(journal)) == [before, before + 1, before + 2]
    assert sum(files.listing("/j").values()) < files.capacity
    files.cut()
    journal = opened(files)
    assert list(everything(journal)) == [before, before + 1, before + 2]
    assert journal.losses[END] == dict.fromkeys(journal.losses[END], 0)
    assert journal.next == before + 3


@pytest.mark.parametrize("policy", ["oldest", "newest"])
def test_a_disk_that_a_journal_has_filled_takes_more_once_what_is_on_it_is_too_old(policy: Policy) -> None:
    files, clock = disk(), Clock()
    journal = opened(files, age_s=3600, clock=clock, policy=policy)
    files.capacity = sum(files.listing("/j").values()) + 50_000
    with pytest.raises(OSError, match="No space"):
        append_each(journal, 10_000)
    before = journal.next
    clock.now_s += 3602
    journal.tick()
    append(journal, numbered(3))
    assert list(everything(journal)) == [before, before + 1, before + 2]
    files.cut()
    journal = opened(files, age_s=3600, clock=clock)
    assert list(everything(journal)) == [before, before + 1, before + 2]
    assert journal.losses[END] == {EXPIRED: before - 1, FULL: 0, DAMAGED: 0}


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("acknowledges", [True, False])
def test_a_full_disk_keeps_nobody_from_opening_reading_and_making_room(acknowledges: bool) -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 200)
    files.kill()
    files.names["/j/acknowledged"].cache += b"torn"
    files.capacity = sum(files.listing("/j").values())
    journal = opened(files, bytes_max=10_000)
    assert len(everything(journal)) == 200
    if acknowledges:
        journal.acknowledge(END, [(1, 150)])
    else:
        append(journal, numbered(1))
    assert len(segments(files)) <= 3
    append(journal, numbered(1))
    journal.close()
    lost = journal.losses[END][FULL]
    assert opened(files).losses == journal.losses
    assert (lost == 0) == acknowledges


def test_memory_that_was_not_synced_is_synced_by_the_next_call() -> None:
    files = disk()
    journal = opened(files)
    journal.remember([(5, 1, 1)])
    files.fails = {"sync"}
    with pytest.raises(OSError, match="Input/output"):
        journal.remember([(5, 2, 2)])
    with pytest.raises(OSError, match="Input/output"):
        journal.remember([(5, 2, 2)])
    files.fails = set()
    journal.remember([(5, 2, 2)])
    files.cut()
    assert list(opened(files).known(5)) == [(1, 2)]


def test_pages_that_the_disk_does_not_return_cost_their_records_only() -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 500)
    inode = files.names[f"/j/{segments(files)[0]}"]
    files.bad_pages = {(id(inode), 2), (id(inode), 5)}
    found = everything(journal)
    lost = 500 - len(found)
    assert 2 * 4096 / 96 - 2 <= lost <= 2 * 4096 / 96 + 4
    assert journal.losses[END][DAMAGED] == lost
    assert all(body.startswith(b"%08d" % number) for number, body in found.items())
