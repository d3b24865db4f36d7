"""The receiving half: each message once, known by who numbered it first."""

from collections.abc import Sequence

import pytest

from bridges.durable.keys import keys_of
from bridges.durable.receiver import AGES_MS, RANGES_MAX, Memory, SettledRange, joined
from bridges.durable.wire import LIVE, REPLAYED, Carried, DurableError
from bridges.durable.work import Settled
from bus.journal.record import encode
from bus.lateness import LATE_MS
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from tests.bridges.durable.gateways import Make, disk
from tests.bridges.support import frame
from tests.helpers.peers import until

OWN, THEIRS, FIRST = 1, 2, 3
BODIES = [wrap(frame(20, seed), Envelope(9, 5)) for seed in range(4)]
"""Enveloped messages with one key: readings that are equal in all that an envelope knows."""


def record(
    number: int, bodies: list[bytes], origin: tuple[int, int] | None = None, age_ms: int = 0, since: int = 0
) -> Carried:
    (made,) = encode(from_payloads(bodies).data, number, 1000, origin)
    return Carried(LIVE, age_ms, since or number, made.encoded)


def test_new_messages_are_given_and_marked() -> None:
    taken = Memory(OWN, {}).take(THEIRS, record(5, BODIES, since=2))
    assert taken.batch is not None
    assert payloads(taken.batch) == BODIES
    assert taken.marks == (SettledRange(THEIRS, 2, 8),)
    assert (taken.journal, list(taken.numbers), taken.known) == (THEIRS, [5, 6, 7, 8], 0)


def test_what_is_known_does_not_come_again() -> None:
    memory = Memory(OWN, {})
    memory.take(THEIRS, record(5, BODIES[:2]))
    taken = memory.take(THEIRS, record(4, BODIES))
    assert taken.batch is not None
    assert payloads(taken.batch) == [BODIES[0], BODIES[3]]
    assert taken.known == 2
    assert memory.take(THEIRS, record(4, BODIES)).batch is None


def test_a_message_that_came_another_way_is_known_by_its_first_number() -> None:
    memory = Memory(OWN, {})
    memory.take(FIRST, record(10, BODIES))
    taken = memory.take(THEIRS, record(1, BODIES, origin=(FIRST, 10)))
    assert taken.batch is None
    assert taken.marks == (SettledRange(THEIRS, 1, 4),)
    assert memory.take(THEIRS, record(5, BODIES, origin=(FIRST, 12))).known == 2


def test_our_own_messages_are_not_taken_back() -> None:
    assert Memory(OWN, {}).take(THEIRS, record(1, BODIES, origin=(OWN, 1))).batch is None


def test_late_messages_get_keys_of_their_own() -> None:
    memory = Memory(OWN, {})
    fresh, late = (
        memory.passed(memory.take(THEIRS, record(number, BODIES, age_ms=age_ms)), 0)
        for number, age_ms in ((1, LATE_MS), (5, LATE_MS + 1))
    )
    assert fresh.batch is not None
    assert late.batch is not None
    assert len(set(keys_of(fresh.batch))) == 1
    assert len(set(keys_of(late.batch))) == 4
    assert [body[12:] for body in payloads(late.batch)] == [body[12:] for body in BODIES]


def test_a_batch_that_passes_is_identified_also_if_some_of_it_is_gone() -> None:
    memory = Memory(OWN, {})
    taken = memory.passed(memory.take(THEIRS, record(5, BODIES, age_ms=LATE_MS + 1)), 0)
    assert taken.batch is not None
    assert taken.identified(taken.batch) == [(taken.batch, (THEIRS, 5))]
    bodies, stranger = payloads(taken.batch), wrap(frame(20, 9), Envelope(8, 8))
    parts = taken.identified(from_payloads([bodies[2], stranger]))
    assert [origin for _, origin in parts] == [(THEIRS, 7), None]
    assert taken.identified(Batch(from_payloads([stranger] * 4).data, 4))[0][1] is None


@pytest.mark.parametrize("since", [0, 2])
def test_a_record_out_of_place_is_told(since: int) -> None:
    with pytest.raises(DurableError, match="out of place"):
        Memory(OWN, {}).take(THEIRS, record(1, BODIES)._replace(since=since))


def test_a_damaged_record_is_told() -> None:
    good = record(1, BODIES)
    damaged = good.record[:-1] + bytes((good.record[-1] ^ 1,))
    with pytest.raises(DurableError, match="damaged"):
        Memory(OWN, {}).take(THEIRS, good._replace(record=damaged))


def test_the_memory_is_bounded() -> None:
    memory = Memory(OWN, {})
    for number in range(1, 3 * RANGES_MAX, 2):
        memory.take(THEIRS, record(number, BODIES[:1]))
    memory.settle([SettledRange(THEIRS, number, number) for number in range(1, 3 * RANGES_MAX, 2)])
    assert len(memory.settled(THEIRS)) <= RANGES_MAX
    for journal in range(10, 3000):
        memory.settle(memory.take(journal, record(1, BODIES[:1])).marks)
    assert not memory.settled(THEIRS)


def test_what_came_is_acknowledged_only_once_it_is_settled() -> None:
    memory = Memory(OWN, {})
    marks = memory.take(THEIRS, record(5, BODIES, since=2)).marks
    assert memory.settled(THEIRS) == []
    assert memory.take(THEIRS, record(5, BODIES)).batch is None
    memory.settle(marks)
    assert memory.settled(THEIRS) == [(2, 8)]


@pytest.mark.parametrize(
    ("then", "is_one"),
    [
        (record(9, BODIES, since=1), True),
        (record(9, BODIES, age_ms=AGES_MS), True),
        (record(9, BODIES, age_ms=AGES_MS + 1), False),
        (record(10, BODIES), False),
        (record(9, BODIES, origin=(FIRST, 9)), False),
    ],
)
def test_records_that_follow_each_other_are_given_as_one(then: Carried, is_one: bool) -> None:
    memory = Memory(OWN, {})
    apart = [memory.take(THEIRS, record(5, BODIES, since=2)), memory.take(THEIRS, then)]
    found = list(joined(apart))
    assert [one.count for taken in found if (one := taken.batch)] == ([8] if is_one else [4, 4])
    assert [one for taken in found for one in taken.numbers] == [n for taken in apart for n in taken.numbers]
    if is_one:
        assert found[0].marks == (SettledRange(THEIRS, then.since if then.since < 2 else 2, 12),)
        assert found[0].age_ms == then.age_ms


def test_of_joined_records_a_stand_in_has_sent_some_before() -> None:
    """They are known by their keys, wherever their records begin."""
    memory, bodies = Memory(OWN, {}), [wrap(frame(20, seed), Envelope(9, seed)) for seed in range(8)]
    replayed = record(1, bodies[2:6])._replace(lane=LIVE | REPLAYED)
    memory.passed(memory.take(FIRST, replayed), 50_000)
    late = [record(1, bodies[:4], age_ms=LATE_MS + 1), record(5, bodies[4:], age_ms=LATE_MS + 1)]
    (one,) = joined([memory.take(THEIRS, some) for some in late])
    taken = memory.passed(one, 50_000)
    assert taken.batch is not None
    assert [body[12:] for body in payloads(taken.batch)] == [body[12:] for body in (*bodies[:2], *bodies[6:])]
    assert (list(taken.numbers), taken.known) == ([1, 2, 7, 8], 4)
    assert taken.marks == (SettledRange(THEIRS, 1, 8),)


def test_late_records_are_not_joined_with_others() -> None:
    memory = Memory(OWN, {})
    ages = LATE_MS, LATE_MS + 1
    apart = [memory.take(THEIRS, record(4 * n + 1, BODIES, age_ms=age)) for n, age in enumerate(ages)]
    assert list(joined(apart)) == apart


async def test_numbers_that_are_taken_for_known_although_they_never_came_are_told(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    a = make("gw-a", disk(), "gw-b")
    await a.is_open()
    assert a.house is not None
    marks = tuple(SettledRange(7, 10 * number, 10 * number) for number in range(1, 270))
    done = list[Sequence[SettledRange]]()
    a.house.tell(Settled(marks, done.append))
    await until(lambda: done, what="the acknowledgement")
    told = [record.message for record in caplog.records if "never came" in record.message]
    assert len(told) == 1
    assert "117 messages" in told[0]
