"""The sending half: live before backlog, a stated share of the time, and nothing twice or never."""

from collections.abc import Iterator
from random import Random

import pytest

from bridges.durable import receiver
from bridges.durable.pace import CHUNK_BYTES, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, Pace
from bridges.durable.sender import CHUNKS_MAX, FOR_OTHERS, ISLANDS_MAX, Kept, Sender
from bridges.durable.wire import BACKLOG, LIVE, Carried, parse
from bus.journal.memory import RANGES_MAX, Memory
from bus.journal.ranges import RangeSet
from bus.journal.record import encode
from bus.wire.batch import from_payloads
from tests.bus.journal.disk import Disk

ROOM = 1 << 20


def kept(first: int, last: int, is_due: bool = True) -> Kept:
    return Kept(b"%d" % first, first, last, 1000, "" if is_due else FOR_OTHERS)


def said(messages: list[bytes] | Iterator[bytes]) -> list[tuple[int, int, int]]:
    """The lane, since and first number of each record."""
    found = [parse(one) for one in messages]
    return [(one.lane, one.since, int(one.record)) for one in found if isinstance(one, Carried)]


def fresh(
    *acknowledged: tuple[int, int], following: int = 1, share: float = 0.5, fifo: bool = False
) -> Sender:
    return Sender(RangeSet([(0, 0), *acknowledged]), following, share, fifo)


def test_new_records_leave_at_once_for_an_end_that_is_there() -> None:
    sender = fresh()
    assert list(sender.committed([kept(1, 3)], 1000, ROOM)) == []
    sender.begin([])
    assert said(sender.committed([kept(4, 5), kept(6, 6)], 1007, ROOM)) == [(LIVE, 4, 4), (LIVE, 4, 6)]
    assert sender.first_missing() == 1
    assert sender.wait_s(0.0) == 0
    backlog = sender.read([kept(1, 3)], 4, 1100, 0.0)
    assert said(backlog.messages) == [(BACKLOG, 1, 1)]
    assert sender.wait_s(0.0) is None
    assert sender.heard([(1, 6)], 0.1) == 6


def test_what_has_no_room_becomes_backlog() -> None:
    sender = fresh()
    sender.begin([])
    assert said(sender.committed([kept(1, 1), kept(2, 2)], 1000, 1)) == [(LIVE, 1, 1)]
    assert said(sender.read([kept(2, 2)], 3, 1000, 0.0).messages) == [(BACKLOG, 1, 2)]


def test_fifo_waits_for_the_backlog() -> None:
    sender = fresh(following=3, fifo=True)
    sender.begin([])
    assert list(sender.committed([kept(3, 3)], 1000, ROOM)) == []
    assert said(sender.read([kept(1, 2), kept(3, 3)], 4, 1000, 0.0).messages) == [
        (BACKLOG, 1, 1),
        (BACKLOG, 1, 3),
    ]
    assert said(sender.committed([kept(4, 4)], 1000, ROOM)) == [(LIVE, 1, 4)]


def test_records_for_others_are_settled_and_told_with_the_next() -> None:
    sender = fresh()
    sender.begin([])
    sent = sender.committed([kept(1, 1), kept(2, 9, False), kept(10, 10)], 1000, ROOM)
    assert said(sent) == [(LIVE, 1, 1), (LIVE, 1, 10)]


def test_records_for_others_that_were_found_are_counted() -> None:
    sender = fresh((1, 2), following=10)
    sender.begin([])
    backlog = sender.read([kept(3, 5, False), kept(6, 9)], 10, 1000, 0.0)
    assert backlog.left == {FOR_OTHERS: 3}
    assert said(backlog.messages) == [(BACKLOG, 0 + 1, 6)]


def test_numbers_that_cannot_be_read_are_given_up() -> None:
    sender = fresh(following=10)
    sender.begin([])
    assert said(sender.read([kept(3, 4), kept(8, 8)], 10, 1000, 0.0).messages) == [
        (BACKLOG, 1, 3),
        (BACKLOG, 1, 8),
    ]
    assert sender.first_missing() == 10


def test_what_was_not_acknowledged_is_sent_again_on_the_next_connection() -> None:
    sender = fresh()
    sender.begin([])
    assert len(list(sender.committed([kept(1, 1), kept(2, 2), kept(3, 3)], 1000, ROOM))) == 3
    sender.heard([(2, 2)], 0.0)
    sender.end()
    assert sender.wait_s(9.0) is None
    assert sender.begin([(1, 1)]) == 1
    assert sender.first_missing() == 3


def test_an_end_that_says_it_has_what_was_never_sent_is_believed_up_to_there() -> None:
    sender = fresh(following=5)
    assert sender.begin([(1, 1 << 60)]) == 4
    assert sender.first_missing() == 5
    sender.begin([])
    assert said(sender.committed([kept(5, 5)], 1000, ROOM)) == [(LIVE, 1, 5)]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_backlog_takes_its_share_of_the_time(share: float) -> None:
    pace, now, busy = Pace(share), 0.0, 0.0
    for _ in range(200):
        wait = pace.wait_s(now)
        assert wait is not None
        now += wait
        pace.begin(now)
        assert pace.wait_s(now) is None
        now, busy = now + 0.03, busy + 0.03
        pace.done(now)
    assert busy / now == pytest.approx(share, rel=0.02)


def test_a_chunk_grows_on_a_fast_link_and_shrinks_on_a_slow_one() -> None:
    for took_s, most in ((0.001, CHUNK_BYTES_MAX), (0.03, CHUNK_BYTES), (5.0, CHUNK_BYTES_MIN)):
        pace = Pace(1.0)
        for _ in range(20):
            pace.begin(0.0)
            pace.done(took_s)
        assert pace.chunk_bytes == most


def test_the_next_chunk_follows_what_is_taken_not_what_is_synced() -> None:
    """An older end says only what it has. Few chunks are on the way to its disk."""
    sender = fresh(following=100)
    sender.begin([])
    sender.read([kept(1, 9)], 10, 1000, 0.0)
    assert sender.wait_s(0.0) is None
    sender.taken(8, 0.01)
    assert sender.wait_s(0.01) is None
    sender.taken(9, 0.01)
    assert sender.wait_s(0.01) == pytest.approx(0.01)
    for first in range(10, 10 * CHUNKS_MAX, 10):
        sender.read([kept(first, first + 9)], first + 10, 1000, 1.0)
        sender.taken(first + 9, 1.01)
    assert sender.wait_s(9.0) is None
    sender.heard([(1, 9)], 9.0)
    assert sender.wait_s(9.0) == 0.0
    sender.read([kept(first + 10, first + 19)], first + 20, 1000, 9.0)
    assert sender.wait_s(9.5) is None
    sender.heard([(1, first + 19)], 9.5)
    assert sender.wait_s(9.5) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(20))
def test_over_losses_every_record_comes_and_none_is_left(seed: int) -> None:
    """A model of an end that remembers, on connections that are cut anywhere."""
    chance, journal, had = Random(seed), list[Kept](), RangeSet([(0, 0)])
    sender, came = fresh(), list[int]()

    def deliver(messages: list[bytes], cut: int) -> None:
        for message in messages[:cut]:
            carried = parse(message)
            assert isinstance(carried, Carried)
            first = int(carried.record)
            assert carried.since <= first
            if first not in had:
                came.append(first)
            had.add(carried.since, next(one.last for one in journal if one.first == first))

    for _ in range(200):
        if not sender.is_up and chance.random() < 0.3:
            sender.begin(list(had))
        first = journal[-1].last + 1 if journal else 1
        new = kept(first, first + chance.randrange(4), chance.random() < 0.8)
        journal.append(new)
        room = chance.choice((0, ROOM))
        messages = list(sender.committed([new], 1000, room))
        if sender.wait_s(1e9) is not None and chance.random() < 0.7:
            start = sender.first_missing()
            some = [one for one in journal if one.last >= start][: chance.randrange(1, 6)]
            messages += sender.read(some, some[-1].last + 1, 1000, 0.0).messages
        if chance.random() < 0.2:
            deliver(messages, chance.randrange(len(messages) + 1))
            sender.end()
            continue
        deliver(messages, len(messages))
        if sender.is_up:
            sender.heard(list(had), 0.0)
    sender.begin(list(had))
    while sender.first_missing() < sender.following:
        start = sender.first_missing()
        some = [one for one in journal if one.last >= start][:5]
        deliver(sender.read(some, some[-1].last + 1, 1000, 0.0).messages, 99)
        sender.heard(list(had), 1.0)
    assert sorted(came) == [one.first for one in journal if not one.why]


@pytest.mark.parametrize(
    ("count", "has_room", "is_restarted"), [(9000, 2, False), (1500, 2, True), (2500, 7, True)]
)
def test_on_a_link_that_is_too_slow_no_end_takes_for_known_what_never_came(
    count: int, has_room: int, is_restarted: bool
) -> None:
    """Again and again new records find no room, and the backlog hardly any. The memory of the real end is
    bounded, that on its disk more tightly: each gap in it is one that the backlog still fills."""
    sender, disk = fresh(), Memory(Disk(Random(1)), "/j")
    disk.open()
    end, came = receiver.Memory(5, {}), RangeSet()
    records = [
        encode(from_payloads([b"%d" % number]).data, number, 1000)[0] for number in range(1, count + 1)
    ]
    held = [Kept(one.encoded, one.number, one.last, one.time_ms) for one in records]

    def deliver(messages: list[bytes]) -> None:
        for message in messages:
            carried = parse(message)
            assert isinstance(carried, Carried)
            taken = end.take(7, carried)
            came.update((number, number) for number in taken.numbers)
            end.settle(taken.marks)
            if is_restarted:
                disk.remember(taken.marks)

    sender.begin([])
    for one in held:
        deliver(list(sender.committed([one], 1000, 0 if one.first % has_room else ROOM)))
    assert len(end.settled(7)) <= ISLANDS_MAX + 1 < RANGES_MAX
    if is_restarted:
        end = receiver.Memory(5, disk.all_known())
    sender.begin(end.settled(7))
    first = sender.first_missing()
    deliver(sender.read(held[first - 1 :], len(held) + 1, 1000, 0.0).messages)
    assert came.covers(1, len(held))


@pytest.mark.parametrize("is_up", [False, True])
def test_records_for_others_make_the_numbers_of_an_end_no_longer(is_up: bool) -> None:
    """While it was away, or lagged, each was a range of its own: they grew as long as the journal did."""
    sender = fresh()
    if is_up:
        sender.begin([])
    records = [kept(number, number, number % 2 == 1) for number in range(1, 2001)]
    for one in records:
        list(sender.committed([one], 0, 0))
    assert (len(sender.acknowledged), sender.following) == (1, 2001)
    sender.begin([])
    backlog = sender.read(records, 2001, 0, 0.0)
    assert (len(backlog.messages), backlog.left) == (1000, {FOR_OTHERS: 0})
    sender.heard([(number, number) for number in range(1, 2001, 2)], 0.0)
    assert list(sender.acknowledged) == [(0, 2000)]
    assert sender.has_all


def test_what_a_ledger_begins_with_and_is_for_others_is_told() -> None:
    sender = fresh()
    records = [kept(number, number, number % 2 == 1) for number in range(1, 11)]
    list(sender.committed(records, 0, 0))
    assert sender.found() == 10
    sender.begin([])
    assert sender.read(records, 11, 0, 0.0).left == {FOR_OTHERS: 5}
