"""Frames of a failover pair that both its gateways kept: each comes once, hours later, in either order."""

import pytest

from bridges.durable.receiver import Memory
from bridges.durable.replays import LATE_MAX, NEAR_MS, REPLAYED_MAX, Replays
from bridges.durable.wire import BACKLOG, LIVE, REPLAYED, Carried
from bus.journal.record import encode
from bus.replaying import is_replayed, passing_replayed
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.durable.gateways import Gateway, Make, disk
from tests.helpers.peers import until

HOLDER, STAND_IN, PAIR = 11, 12, 77
HOUR_MS = 3_600_000
A, B = b"key a", b"key b"


@pytest.mark.parametrize(
    ("after_ms", "other", "known"),
    [
        (0, HOLDER, True),
        (NEAR_MS, HOLDER, True),
        (-NEAR_MS, HOLDER, True),
        (NEAR_MS + 1, HOLDER, False),
        (0, STAND_IN, False),
    ],
)
def test_what_another_journal_had_at_that_time_is_known(after_ms: int, other: int, known: bool) -> None:
    replays = Replays()
    assert replays.take([A], STAND_IN, 50_000, is_replayed=True, is_late=False) == []
    found = replays.take([B, A, b""], other, 50_000 + after_ms, is_replayed=False, is_late=True)
    assert found == ([False, True, False] if known else [])


def test_a_holder_that_comes_first_is_known_to_its_stand_in() -> None:
    replays = Replays()
    replays.take([A], HOLDER, 50_000, is_replayed=False, is_late=True)
    assert replays.take([A], 13, 50_000, is_replayed=False, is_late=True) == []
    assert replays.take([A, B], STAND_IN, 50_100, is_replayed=True, is_late=True) == [True, False]


def test_the_memory_is_bounded_and_what_stand_ins_sent_outlasts_what_was_late() -> None:
    replays = Replays()
    replays.take([A], STAND_IN, 0, is_replayed=True, is_late=True)
    for number in range(3 * LATE_MAX):
        replays.take([b"%d" % number], HOLDER, 0, is_replayed=False, is_late=True)
    assert replays.take([A], HOLDER, 0, is_replayed=False, is_late=True) == [True]
    assert replays.take([b"1"], STAND_IN, 0, is_replayed=True, is_late=True) == []
    for number in range(2 * REPLAYED_MAX):
        replays.take([b"r%d" % number], STAND_IN, 0, is_replayed=True, is_late=False)
    assert replays.take([A], HOLDER, 0, is_replayed=False, is_late=True) == []


def said(*numbers: int) -> Batch:
    """Frames as both gateways of the pair stamp them."""
    return from_payloads(wrap(pack(1, (7,), b"%d" % one), Envelope(PAIR, one)) for one in numbers)


def carried(journal_number: int, lane: int, age_ms: int, *numbers: int) -> Carried:
    (made,) = encode(said(*numbers).data, journal_number, 1000)
    return Carried(lane, age_ms, journal_number, made.encoded)


def test_over_an_hour_of_virtual_time_the_tail_of_a_dead_holder_comes_once() -> None:
    """The holder died with five frames; its stand-in sent two, and a later one has the key of one."""
    memory, heard = Memory(1, {}), list[bytes]()
    for now_ms, journal, record in (
        (50_000, STAND_IN, carried(1, LIVE | REPLAYED, 900, 4, 5)),
        (50_000, STAND_IN, carried(3, LIVE, 0, 6)),
        (HOUR_MS, HOLDER, carried(1, BACKLOG, HOUR_MS - 49_000, 1, 2, 3, 4, 5)),
        (HOUR_MS, HOLDER, carried(6, BACKLOG, HOUR_MS - 80_000, 5)),
    ):
        taken = memory.passed(memory.take(journal, record), now_ms)
        heard += payloads(taken.batch) if taken.batch else []
        memory.settle(taken.marks)
    assert [one[-1:] for one in heard] == [b"4", b"5", b"6", b"1", b"2", b"3", b"5"]
    assert (memory.settled(HOLDER), memory.settled(STAND_IN)) == ([(1, 6)], [(1, 3)])


class Clock:
    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return 1_800_000_000.0 + self.ahead_s


@pytest.mark.parametrize("first", ["gw-a", "gw-b"])
async def test_a_dead_holder_doubles_nothing_when_it_returns(make: Make, first: str) -> None:
    clock, last = Clock(), make("gw-c", disk())
    pair = {name: make(name, disk(), "gw-c", unix_s=clock) for name in ("gw-a", "gw-b")}
    for one in pair.values():
        await one.is_open()
        one.dial("tcp://127.0.0.1:1", "gw-c")
    pair["gw-a"].trunk.publish(said(1, 2, 3, 4, 5))
    with passing_replayed():
        pair["gw-b"].trunk.publish(said(4, 5))
    pair["gw-b"].trunk.publish(said(6))
    assert not is_replayed()
    await all_is_kept(*pair.values())
    clock.ahead_s += 3600
    url = last.listen().url
    for one in sorted(pair.values(), key=lambda one: one.name.gateway != first):
        one.links[0].close()
        one.dial(url, "gw-c")
        await until(lambda one=one: not one.end("gw-c").files.queued, what="all")  # type: ignore[misc]
    assert sorted(one[-1:] for one in last.heard.messages) == [b"%d" % number for number in range(1, 7)]


async def all_is_kept(*gateways: Gateway) -> None:
    await until(lambda: not any(one.end("gw-c").stats.queued for one in gateways), what="the journals")
