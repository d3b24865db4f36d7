"""A journal on a simulated disk: numbers, consumers, bounds, ages and readers."""

import pytest

from bus.journal.errors import JournalFull, RecordError
from bus.journal.journal import DAMAGED, EXPIRED, FULL, Group, Policy
from bus.journal.ranges import RangeSet
from bus.wire.batch import from_payloads
from tests.bus.journal.support import (
    END,
    KIB,
    Clock,
    append,
    append_each,
    disk,
    everything,
    numbered,
    opened,
    segments,
)


def test_messages_are_there_after_a_start_with_what_is_known_of_them() -> None:
    files = disk()
    journal = opened(files)
    data = from_payloads([b"one", b"two"]).keep()
    assert journal.append([Group(data, 7), Group(data, 8, (5, 100))]).first == 1
    assert journal.append([]) == (5, [])
    journal.close()
    journal = opened(files)
    read = journal.read(1, 4096)
    found = [(one.number, one.count, one.time_ms, one.origin) for one in read.records]
    assert found == [(1, 2, 7, None), (3, 2, 8, (5, 100))]
    assert (read.following, read.damaged, read.gone) == (5, 0, 0)
    assert list(journal.known(5)) == [(100, 101)]
    assert not journal.known(6)
    assert everything(journal) == {1: b"one", 2: b"two", 3: b"one", 4: b"two"}


def test_groups_of_one_time_make_one_record() -> None:
    journal, one = opened(disk()), from_payloads([b"x"]).keep()
    groups = [Group(one, 7), Group(one, 7), Group(one, 8), Group(one, 8, ends=1), Group(one, 8, ends=1)]
    groups += [Group(one, 8, (3, 1)), Group(one, 8, (3, 2))]
    assert [record.count for record in journal.append(groups).records] == [2, 1, 2, 1, 1]


def test_data_that_are_no_messages_are_refused_and_nothing_is_appended() -> None:
    journal = opened(disk())
    with pytest.raises(RecordError):
        journal.append([Group(from_payloads([b"x"]).keep(), 7), Group(b"no message", 7)])
    append(journal, [b"y"])
    assert everything(journal) == {1: b"y"}


@pytest.mark.usefixtures("small_segments")
def test_a_segment_goes_when_all_have_it() -> None:
    files = disk()
    journal = opened(files, consumers=["b", "c"])
    append_each(journal, 200)
    count = len(segments(files))
    assert count > 4
    assert journal.acknowledge("b", [(1, 200)]) == 200
    assert journal.acknowledge("b", [(1, 200)]) == 0
    assert len(segments(files)) == count
    assert journal.acknowledge("c", [(100, 200)]) == 101
    between = segments(files)
    assert 1 < len(between) < count
    assert journal.acknowledge("c", [(1, 99)]) == 99
    assert len(segments(files)) == 1
    assert journal.backlog("c") == (0, 0, None)
    read = journal.read(1, 1 << 20)
    assert (read.damaged, read.gone, read.following) == (0, read.records[0].number - 1, 201)


@pytest.mark.usefixtures("small_segments")
def test_what_is_acknowledged_and_gone_is_known_after_a_start() -> None:
    files = disk()
    journal = opened(files, consumers=["b", "c"])
    append_each(journal, 200)
    for name in "bc":
        journal.acknowledge(name, [(80, 160)])
    journal.close()
    journal = opened(files, consumers=["b", "c", "d"])
    assert journal.acknowledged("b") == RangeSet([(0, 0), (80, 160)])
    found = everything(journal)
    assert set(range(1, 80)) | set(range(161, 201)) <= set(found)
    assert journal.losses["d"] == {FULL: 0, EXPIRED: 0, DAMAGED: 0}
    assert journal.backlog("d").messages == len(found)


def test_acknowledgements_of_what_was_never_sent_are_ignored() -> None:
    journal = opened(disk())
    append(journal, numbered(5))
    assert journal.acknowledge(END, [(4, 1 << 63), (-5, -1), (9, 2), (7, 8)]) == 2
    assert journal.backlog(END).messages == 3
    append(journal, numbered(1))
    assert journal.backlog(END).messages == 4


@pytest.mark.usefixtures("small_segments")
def test_a_backlog_tells_its_oldest_and_its_bytes() -> None:
    journal = opened(disk())
    append_each(journal, 300)
    assert journal.backlog(END).oldest_ms == 1
    size = journal.backlog(END).bytes
    journal.acknowledge(END, [(1, 149), (200, 210)])
    assert journal.backlog(END)[::2] == (140, 150)
    assert 0.4 < journal.backlog(END).bytes / size < 0.6


@pytest.mark.usefixtures("small_segments")
def test_a_new_consumer_begins_at_the_first_message_that_is_kept_and_a_forgotten_one_keeps_none() -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 200)
    journal.acknowledge(END, [(1, 150)])
    first = int(segments(files)[0][:20])
    assert 100 < first < 151
    journal.add("new")
    assert journal.backlog("new").messages == 201 - first
    journal.forget(END)
    assert len(segments(files)) > 1
    assert journal.losses.keys() == {"new"}
    journal.forget("new")
    assert len(segments(files)) == 1


@pytest.mark.usefixtures("small_segments")
def test_a_consumer_that_is_not_configured_any_more_is_forgotten() -> None:
    files = disk()
    journal = opened(files, consumers=["b", "c"])
    append_each(journal, 200)
    journal.acknowledge("b", [(1, 200)])
    journal.close()
    opened(files, consumers=["b"]).close()
    assert len(segments(files)) <= 1
    assert opened(files, consumers=["b"]).next == 201


def test_what_is_not_for_an_end_is_no_backlog_of_it() -> None:
    files = disk()
    journal = opened(files, consumers=["b", "c"])
    bits = [journal.index(name) for name in "bc"]
    append(journal, numbered(3), ends=1 << bits[1])
    append(journal, numbered(4))
    assert [journal.backlog(name).messages for name in "bc"] == [4, 7]
    journal.close()
    journal = opened(files, consumers=["c", "d", "b"])
    assert [journal.index(name) for name in "bcd"] == [*bits, 2]
    assert [journal.backlog(name).messages for name in "bcd"] == [4, 7, 7]
    assert [record.ends for record in journal.read(1, 9000).records] == [1 << bits[1], None]


# -- bounds


def test_a_full_journal_drops_its_oldest_and_counts_what_each_consumer_lost() -> None:
    files = disk()
    journal = opened(files, bytes_max=1 << 20, consumers=["b", "c"])
    append(journal, numbered(2000, 100))
    journal.acknowledge("b", [(1, 500)])
    for _ in range(9):
        append(journal, numbered(2000, 100))
    found = everything(journal)
    lost = 20_000 - len(found)
    assert sum(files.listing("/j").values()) < 1.05 * (1 << 20)
    assert list(found) == list(range(lost + 1, 20_001))
    assert journal.losses == {
        "b": {FULL: lost - 500, EXPIRED: 0, DAMAGED: 0},
        "c": {FULL: lost, EXPIRED: 0, DAMAGED: 0},
    }
    read = journal.read(1, 1000)
    assert (read.gone, read.damaged) == (lost, 0)
    journal.close()
    assert opened(files, bytes_max=1 << 20, consumers=["b", "c"]).losses == journal.losses


def test_a_full_journal_that_keeps_what_it_has_refuses_what_is_new() -> None:
    journal = opened(disk(), bytes_max=1 << 20, policy="newest")
    append(journal, numbered(9000, 100))
    with pytest.raises(JournalFull, match=r"the journal /j is full \(\d+ of 1048576 bytes\): 2000 messages"):
        append(journal, numbered(2000, 100))
    assert journal.refused == 2000
    assert len(everything(journal)) == journal.next - 1 == 9000
    journal.acknowledge(END, [(1, 9000)])


@pytest.mark.parametrize("policy", ["newest", "oldest"])
def test_a_small_journal_has_room_again_when_all_is_acknowledged(policy: Policy) -> None:
    journal = opened(disk(), bytes_max=64 * KIB, policy=policy)
    for _ in range(5):
        first = journal.next
        append_each(journal, 200, 100)
        journal.acknowledge(END, [(first, journal.next - 1)])
    assert (journal.refused, journal.losses[END][FULL]) == (0, 0)
    assert journal.size <= 64 * KIB


def test_what_is_larger_than_the_journal_is_refused_and_drops_nothing() -> None:
    journal = opened(disk(), bytes_max=1 << 20)
    append(journal, [b"small"])
    with pytest.raises(JournalFull):
        append(journal, [bytes(1 << 20)])
    assert everything(journal) == {1: b"small"}


@pytest.mark.usefixtures("small_segments")
def test_what_is_too_old_expires() -> None:
    clock, journal = Clock(), None
    journal = opened(disk(), age_s=3600, clock=clock)
    for _ in range(10):
        append(journal, numbered(10, 100))
        clock.now_s += 600
        journal.tick()
    lost = journal.losses[END][EXPIRED]
    assert 30 <= lost <= 40
    assert list(everything(journal)) == list(range(lost + 1, 101))
    clock.now_s += 3700
    journal.tick()
    assert journal.losses[END] == {FULL: 0, EXPIRED: 100, DAMAGED: 0}
    append(journal, [b"x"])
    assert everything(journal) == {101: b"x"}


@pytest.mark.parametrize("step_s", [-(10**9), 10**9])
def test_a_clock_that_steps_does_not_empty_a_journal(step_s: int) -> None:
    files, clock = disk(), Clock()
    journal = opened(files, age_s=3600, clock=clock, wall=lambda: 10.0**9)
    append(journal, numbered(10), time_ms=10**12)
    clock.now_s += 1800
    journal.close()
    later = Clock()
    later.now_s = 5.0  # of another boot
    journal = opened(files, age_s=3600, clock=later, wall=lambda: 10.0**9 + step_s)
    append(journal, numbered(10), time_ms=10**12 + 1000 * step_s)
    later.now_s += 1700
    journal.tick()
    assert len(everything(journal)) == 20
    later.now_s += 4000
    journal.tick()
    assert len(everything(journal)) == 0


# -- readers


@pytest.mark.parametrize("most_bytes", [1, 100, 5000, 1 << 20])
@pytest.mark.usefixtures("small_segments")
def test_reading_on_returns_each_message_once(most_bytes: int) -> None:
    journal, bodies = opened(disk()), [bytes(number * 7 % 900) for number in range(300)]
    for at in range(0, 300, 15):
        append(journal, bodies[at : at + 15])
    assert list(everything(journal, most_bytes).values()) == bodies


def test_a_reader_gets_a_part_of_a_record() -> None:
    journal = opened(disk())
    append(journal, numbered(50))
    read = journal.read(20, 9000, until=30)
    assert [(one.number, one.last) for one in read.records] == [(20, 29)]
    assert read.following == 30
    assert journal.read(30, 9000).records[0].last == 50
    assert journal.read(51, 9000) == ([], 51, 0, 0)
    assert journal.read(99, 9000) == ([], 99, 0, 0)


@pytest.mark.parametrize("readers", [1, 8])
def test_readers_go_on_where_they_were(readers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.journal.reading.BLOCK_BYTES", 20_000)
    files = disk()
    journal = opened(files)
    append_each(journal, 3000)
    asked = 0
    pread = files.pread

    def counted(file: int, size_bytes: int, offset: int) -> bytes:
        nonlocal asked
        asked += size_bytes
        return pread(file, size_bytes, offset)

    monkeypatch.setattr(files, "pread", counted)
    numbers = [1 + 10 * reader for reader in range(readers)]
    while min(numbers) < journal.next:
        numbers = [journal.read(number, 15_000).following for number in numbers]
    assert asked < 1.5 * readers * (3000 * 96 + 64 * KIB)


@pytest.mark.usefixtures("small_segments")
def test_a_reader_that_waits_at_the_end_goes_on() -> None:
    journal, number = opened(disk()), 1
    for _ in range(50):
        append(journal, numbered(7, 100))
        read = journal.read(number, 1 << 20)
        assert (sum(one.count for one in read.records), read.following) == (7, journal.next)
        number = read.following


# -- what came from others


def test_what_is_remembered_survives_a_power_cut() -> None:
    files = disk()
    journal = opened(files)
    journal.remember([(5, 1, 10), (6, 3, 3), (5, 12, 13)])
    files.cut()
    journal = opened(files)
    assert list(journal.known(5)) == [(1, 10), (12, 13)]
    assert list(journal.known(6)) == [(3, 3)]


def test_what_was_appended_is_remembered_without_another_sync() -> None:
    files = disk()
    journal = opened(files)
    append(journal, numbered(3), origin=(5, 1))
    steps = files.steps
    append(journal, numbered(3), origin=(5, 4))
    journal.remember([(5, 1, 6)])
    assert files.steps == steps + 2  # written and synced
    files.cut()
    assert list(opened(files).known(5)) == [(1, 6)]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.journal.memory.RANGES_MAX", 5)
    monkeypatch.setattr("bus.journal.memory.JOURNALS_MAX", 3)
    journal = opened(disk())
    for number in range(20):
        journal.remember([(1, 10 * number, 10 * number + number % 5)])
    assert len(journal.known(1)) == 5
    assert journal.assumed == journal.known(1).count - sum(number % 5 + 1 for number in range(20))
    for other in range(2, 5):
        journal.remember([(other, 1, 1)])
    assert [len(journal.known(other)) for other in range(1, 5)] == [0, 1, 1, 1]


def test_notes_are_written_anew_when_they_grow() -> None:
    files = disk()
    journal = opened(files)
    for number in range(1, 9000, 3):
        journal.remember([(5, number, number)])
        journal.remember([(5, 1, number)])
    assert files.listing("/j")["received"] < 70 * KIB
    journal.close()
    assert opened(files).known(5).count == 8998
