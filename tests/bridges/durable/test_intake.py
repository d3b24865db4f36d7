"""What waits for the thread of a journal: so many bytes, in order, and who numbered it first."""

import pytest

from bridges.durable.classes import Classes, Room
from bridges.durable.end import End
from bridges.durable.intake import Intake
from bridges.durable.receiver import Taken
from bridges.durable.sifting import Sieve
from bridges.durable.work import Settled
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack

NOW_MS, ROOM = 50_000, 1 << 30


def waiting() -> tuple[Intake, End]:
    intake = Intake(Room(Classes(()), ROOM, is_lowest=False), lambda: NOW_MS)
    return intake, End("gw-b", "link", Sieve(), intake.offer)


def said(*numbers: int) -> Batch:
    return from_payloads(wrap(pack(1, (7,), b"%d" % one), Envelope(9, one)) for one in numbers)


def test_so_many_bytes_are_taken_and_numbers_with_the_last_of_the_messages_before_them() -> None:
    intake, end = waiting()
    batches, told = [said(1), said(2), said(3), said(4)], Settled((), lambda _: None)
    for one in batches:
        end.send(one)
    intake.tell(told)
    found = [intake.taken(size) for size in (2 * len(batches[0].data), 1, ROOM)]
    assert [[one.batch for one in offered] for offered, _ in found] == [
        batches[:2],
        batches[2:3],
        batches[3:],
    ]
    assert [numbers for _, numbers in found] == [[], [], [told]]
    assert not intake


def test_above_16_mib_that_wait_messages_are_live_only() -> None:
    intake, end = waiting()
    for _ in range(2):
        end.send(from_payloads([bytes(9 << 20)]))
    assert len(intake.taken(ROOM)[0]) == 1
    assert (end.stats.queued, end.stats.dropped) == (1, {"no peer": 1})
    end.send(from_payloads([bytes(9 << 20)]))
    assert len(intake.taken(ROOM)[0]) == 1


@pytest.mark.parametrize(
    ("passes", "holds", "numbers", "origins", "time_ms"),
    [
        (True, False, (1, 2), [(7, 11)], NOW_MS - 2000),
        (False, True, (1, 2), [(7, 11)], NOW_MS - 2000),
        (False, True, (3, 1), [None, (7, 11)], NOW_MS - 2000),
        (True, False, (3, 4), [None, None], NOW_MS - 2000),
        (False, True, (3, 4), [None], NOW_MS),
        (False, False, (1, 2), [None], NOW_MS),
    ],
)
def test_what_passes_through_the_bus_or_is_held_there_keeps_its_first_numbers_and_its_age(
    passes: bool, holds: bool, numbers: tuple[int, ...], origins: list[tuple[int, int] | None], time_ms: int
) -> None:
    intake, end = waiting()
    taken = Taken(said(1, 2), 2000, 7, (11, 12), (), 0)
    intake.passing(taken if passes else None)
    intake.held(taken, holds)
    end.send(said(*numbers))
    offered, _ = intake.taken(ROOM)
    assert [one.origin for one in offered] == origins
    assert {one.time_ms for one in offered} == {time_ms}
