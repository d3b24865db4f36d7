"""A link of a durable trunk that closes, and opens again: what is kept, and what its ledgers say."""

import asyncio

import pytest

from bridges.durable.end import End
from bridges.durable.house import House
from bridges.durable.sifting import Sieve
from bus.wire.frame import pack
from tests.bridges.durable.gateways import GatedDisk, Make, account, disk
from tests.helpers.peers import until


def reading(number: int) -> bytes:
    return pack(1, (7, 8), b"%d" % number)


async def test_a_link_that_is_opened_again_goes_on_where_it_was(make: Make) -> None:
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    a.dial(listening.url, "gw-b")
    a.say(reading(1), reading(2))
    await until(lambda: a.end("gw-b").files.sent == 2, what="the acknowledgement")
    a.links[0].close()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    assert (a.end("gw-b").files.offered, a.end("gw-b").files.queued) == (0, 0)
    a.say(reading(3))
    await until(lambda: a.end("gw-b").files.queued == 1, what="the journal")
    a.links[1].close()
    a.dial(listening.url, "gw-b")
    await b.hears(3)
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    assert b.heard.messages == [reading(1), reading(2), reading(3)]
    assert not any(port.stats.rejected for port in b.trunk.ports)


async def test_a_link_that_is_opened_again_keeps_what_the_journal_has_and_not_what_it_lost(
    make: Make,
) -> None:
    a, b = make("gw-a", disk(), "gw-b", bytes=64 * 1024), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    for number in range(40):
        a.say(*(reading(100 * number + k) + bytes(100) for k in range(100)))
        await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
    left = a.end("gw-b").files.queued
    assert a.end("gw-b").files.dropped == {"journal full": 4000 - left}
    a.links[0].close()
    link = a.dial(b.listen().url, "gw-b")
    files = a.end("gw-b").files
    assert (files.offered, files.queued) == (left, left)
    await b.hears(left)
    await until(lambda: files.sent == left, what="the acknowledgement")
    _, counts = account(a, link)
    assert (counts.queued, counts.balance()) == (0, 0)


async def test_what_is_on_its_way_to_the_journal_when_a_link_closes_does_not_wait_in_its_ledger(
    make: Make,
) -> None:
    slow = GatedDisk()
    a = make("gw-a", slow, "gw-b")
    await a.is_open()
    link, house = a.dial("tcp://127.0.0.1:1", "gw-b"), a.house
    assert house is not None
    slow.syncs.clear()
    a.say(reading(1))
    await until(lambda: not house.intake, what="the write")
    a.say(reading(2))
    link.close()
    house.close()
    slow.syncs.set()
    stats, files = account(a, link)
    assert (stats.queued, stats.sent, stats.balance()) == (0, 2, 0)
    assert (files.queued, files.dropped, files.balance()) == (0, {"kept": 2}, 0)


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_link_that_is_opened_again_and_again_keeps_no_ledger_of_before(
    make: Make, is_busy: bool
) -> None:
    slow = GatedDisk()
    a = make("gw-a", slow, "gw-b")
    await a.is_open()
    for number in range(4):
        link, house = a.dial("tcp://127.0.0.1:1", "gw-b"), a.house
        assert house is not None
        if is_busy:
            slow.syncs.clear()
        a.say(reading(number))
        if is_busy:
            await until(lambda: not house.intake, what="the write")  # noqa: B023
            a.say(reading(number))
        else:
            await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
        link.close()
        assert len(a.trunk._kept) == is_busy  # noqa: SLF001
        slow.syncs.set()
        await until(lambda: not a.trunk._kept, what="the end of the ledger")  # noqa: SLF001
    stats, files = account(a, link)
    count = 8 if is_busy else 4
    assert (stats.sent, stats.queued, stats.balance(), files.balance()) == (count, 0, 0, 0)
    assert (files.queued, files.dropped) == (0, {"kept": files.offered})


@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_journal_that_is_closed_while_it_is_opened_keeps_what_waits_and_lets_the_next_one_have_it(
    make: Make, is_slow: bool
) -> None:
    slow = GatedDisk()
    if is_slow:
        slow.opens.clear()
    a = make("gw-a", slow, "gw-b")
    link, last = a.dial("tcp://127.0.0.1:1", "gw-b"), a.house
    assert last is not None
    a.say(reading(1), reading(2))
    link.close()
    last.close()
    house = House(a.name, last.settings, ["gw-b"], files=slow)
    end = End("gw-b", "link", Sieve(), house.offer)
    house.open(asyncio.get_running_loop(), last)
    house.enter(end)
    slow.opens.set()
    await until(lambda: house.journal_id or house.fault, what="the journal")
    assert (house.fault, end.files.queued) == ("", 2)
    house.close(wait=True)
    _, files = account(a, link)
    assert (files.queued, files.dropped, files.balance()) == (0, {"kept": 2}, 0)
