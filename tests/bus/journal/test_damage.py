"""Journals that are damaged: flipped bits, torn tails, segments that are missing, doubled or of others."""

from copy import deepcopy
from functools import cache
from random import Random

import pytest

from bus.journal.errors import JournalError
from bus.journal.journal import DAMAGED
from bus.journal.record import encode
from bus.journal.segment import START, Head, name_of, pack_head
from bus.journal.verify import records, verify
from bus.wire.batch import from_payloads
from tests.bus.journal.disk import Disk, Inode
from tests.bus.journal.support import END, append, append_each, disk, everything, numbered, opened

COUNT = 600
PAGE = 4096


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.journal.journal.SEGMENT_BYTES", (16_000, 16_000))


def written() -> Disk:
    """Return a disk with a closed journal: records of one message and of many, some of them long."""
    return deepcopy(_written())


@cache
def _written() -> Disk:
    files = disk()
    journal = opened(files)
    while journal.next <= COUNT:
        append_each(journal, 30)
        append(journal, numbered(30, first=journal.next))
        append(journal, [b"%08d" % journal.next + bytes(9000)])
    journal.remember([(5, 1, 9)])
    journal.close()
    return files


def is_sound(number: int, body: bytes) -> bool:
    return body.startswith(b"%08d" % number) and not body[8:].strip(b"\0")


def segments(files: Disk) -> list[str]:
    return sorted(name for name in files.listing("/j") if name.endswith(".log"))


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_in_any_page_costs_its_record_and_is_told(seed: int) -> None:
    random, sizes = Random(seed), written().listing("/j")
    del sizes["reserve"]  # which nobody reads
    places = [(name, page) for name, size in sizes.items() for page in range(-(-size // PAGE))]
    assert len(places) > 20
    for name, page in places:
        files = written()
        size = files.listing("/j")[name]
        files.flip(
            f"/j/{name}", random.randrange(page * PAGE, min(size, (page + 1) * PAGE)), random.randrange(8)
        )
        if name == "journal.json":
            with pytest.raises(JournalError, match=r"/j/journal.json: it is damaged.*restore the file"):
                opened(files)
            assert len(list(records("/j", files))) > 300
            continue
        faults = verify("/j", files).faults
        journal = opened(files)
        found = everything(journal)
        lost = journal.losses[END][DAMAGED]
        assert all(is_sound(number, body) for number, body in found.items())
        assert len(found) + lost == journal.next - 1 >= COUNT
        assert lost <= (30 if name.endswith(".log") else 0)
        assert faults
        assert journal.known(5).covers(1, 9)
        append(journal, numbered(1, first=journal.next))
        assert len(everything(journal)) + lost == journal.next - 1


def test_a_flipped_bit_in_the_last_record_does_not_give_its_number_to_another() -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 5)
    journal.close()
    name = segments(files)[-1]
    files.flip(f"/j/{name}", files.listing("/j")[name] - 1)
    journal = opened(files)
    append(journal, [b"new"])
    assert {number: body[:3] for number, body in everything(journal).items()}[6] == b"new"
    assert journal.losses[END][DAMAGED] == 1


@pytest.mark.parametrize("cut_bytes", [1, 40, 69, 95, 96, 97])
def test_a_torn_tail_is_no_record_and_nothing_is_appended_to_it(cut_bytes: int) -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 20)
    journal.close()
    path = f"/j/{segments(files)[0]}"
    for content in (files.names[path].cache, files.names[path].durable):
        del content[-cut_bytes:]
    assert any("bytes at the end are no whole record" in fault for fault in verify("/j", files).faults) or (
        cut_bytes == 96
    )
    journal = opened(files)
    append(journal, [b"new"])
    found = everything(journal)
    assert len(found) in (20, 19)
    assert all(is_sound(number, body) for number, body in list(found.items())[:-1])
    assert (len(segments(files)) == 1) == (cut_bytes == 96)


def test_a_missing_segment_is_counted_and_told() -> None:
    files = written()
    names = segments(files)
    first, last = int(names[2][:20]), int(names[3][:20]) - 1
    files.unlink(f"/j/{names[2]}")
    (fault,) = verify("/j", files).faults
    assert fault == f"{names[1]}: messages {first} to {last} are damaged or missing"
    journal = opened(files)
    found = everything(journal)
    assert journal.losses[END][DAMAGED] == last - first + 1
    assert sorted({*range(1, journal.next)} - {*found}) == list(range(first, last + 1))


def test_a_segment_that_vanishes_while_it_is_read_is_counted() -> None:
    files = written()
    journal = opened(files)
    names = segments(files)
    journal.read(1, 100)
    files.unlink(f"/j/{names[1]}")
    lost = int(names[2][:20]) - int(names[1][:20])
    assert len(everything(journal)) == journal.next - 1 - lost
    assert journal.losses[END][DAMAGED] == lost


def test_a_segment_under_another_name_is_not_read_twice() -> None:
    files = written()
    names = segments(files)
    copied = name_of(int(names[1][:20]) + 5)
    files.names[f"/j/{copied}"] = files.names[f"/j/{names[1]}"]
    assert f"{copied} is a copy of {names[1]}: it is not read" in verify("/j", files).faults
    journal = opened(files)
    assert len(everything(journal)) == journal.next - 1
    assert journal.losses[END][DAMAGED] == 0
    assert copied in files.listing("/j")


def test_records_that_another_segment_has_too_are_not_read_twice() -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 50)
    path = f"/j/{segments(files)[0]}"
    early = len(files.names[path].cache)
    append_each(journal, 50)
    late = files.names[path].cache[early:]
    doubled = pack_head(Head(journal.id, 51, 0)) + late
    journal.close()
    files.names[f"/j/{name_of(51)}"] = Inode(bytearray(doubled), bytearray(doubled))
    wanted = f"{name_of(1)}: 50 messages that the next segment has too: they are not read"
    assert verify("/j", files).faults == [wanted]
    journal = opened(files)
    assert len(everything(journal)) == journal.next - 1 == 100


def test_a_segment_of_another_journal_is_not_read() -> None:
    files = written()
    names = segments(files)
    head = pack_head(Head(1, int(names[1][:20]), 0))
    files.names[f"/j/{names[1]}"].cache[: len(head)] = head
    fault = verify("/j", files).faults[0]
    assert fault.startswith(f"{names[1]} is of another journal (")
    journal = opened(files)
    assert journal.losses[END][DAMAGED] == 0
    found = everything(journal)
    assert len(found) == journal.next - 1 - (int(names[2][:20]) - int(names[1][:20]))


def test_a_message_with_the_bytes_of_a_record_is_no_record_when_its_own_is_damaged() -> None:
    files = disk()
    journal = opened(files)
    (forged,) = encode(from_payloads([b"forged"]).data, 2, 7)
    append_each(journal, 1)
    place = files.listing("/j")[name_of(1)]
    append(journal, [forged.encoded])
    append_each(journal, 1)
    journal.close()
    files.flip(f"/j/{name_of(1)}", place + 27)  # the time of the second
    journal = opened(files)
    assert list(everything(journal)) == [1, 3]


def test_a_damaged_length_hides_no_other_record() -> None:
    files = disk()
    journal = opened(files)
    append_each(journal, 6, size=28)  # in 64 bytes each
    journal.close()
    files.flip(f"/j/{name_of(1)}", START + 7, 6)  # the length of the first is that of two
    for number in (1, 2, 3, 6):
        journal = opened(deepcopy(files))
        assert journal.read(number, 1).records[0].number == max(2, number)
        assert len(everything(journal)) == 5


def test_a_damaged_head_costs_no_record() -> None:
    files = written()
    name = segments(files)[1]
    files.flip(f"/j/{name}", 9)
    assert verify("/j", files).faults == [f"{name} has a damaged head: its records are read"]
    journal = opened(files)
    assert len(everything(journal)) == journal.next - 1


def test_a_sound_journal_has_no_faults_and_says_what_consumers_lack() -> None:
    files = written()
    journal = opened(files)
    journal.acknowledge(END, [(1, 100)])
    seen = verify("/j", files)
    assert seen.faults == []
    assert seen.identity is not None
    assert seen.identity.id == journal.id
    assert seen.lacks == {END: journal.next - 1 - 100}
    assert sum(one.messages for one in seen.segments) == len(everything(journal))
    assert [record.number for record in records("/j", files)][-1] == journal.next - 1
