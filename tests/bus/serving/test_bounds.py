"""What every service on `bus.serving` has: the same cases over a tiny one and over both brokers."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec
from itertools import count, islice

import pytest

from tests.bus.serving.services import NEWS_BYTES, Lines, Packets, Publications, Served
from tests.bus.serving.serving_house import ONE, OTHER, House
from tests.helpers.peers import until


def is_lacking(module: str) -> bool:
    return find_spec(module) is None


SYNDICATION = pytest.mark.skipif(any(map(is_lacking, ("msgpack", "lark", "re2"))), reason="no syndication")
ALIVE = [Lines, Packets]  # those with a sign of life


@pytest.fixture(params=[*ALIVE, pytest.param(Publications, marks=SYNDICATION)])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House[Served]]:
    house = House(request.param)
    yield house
    house.close()


async def test_one_host_with_over_half_makes_room_for_others_and_not_for_itself(house: House[Served]) -> None:
    service = house.serve(connections=8)
    guests = await house.join(range(8))
    refused = await house.come(service.greet())
    await until(lambda: refused.gone)
    assert service.stats.rejected == {"connections full": 1}
    other = await house.come(service.greet(), OTHER)
    await until(lambda: guests[0].gone)  # the one that was longest silent
    await until(lambda: service.signs(other.heard) > 0)
    assert not any(guest.gone for guest in (*guests[1:], other))
    assert service.connections == 8


async def test_a_host_with_half_of_the_connections_makes_no_room(house: House[Served]) -> None:
    service = house.serve(connections=8)
    guests = [await house.come(service.greet(), host) for host in (ONE, OTHER) * 4]
    await until(lambda: service.connections == 8 and all(service.signs(guest.heard) for guest in guests))
    refused = await house.come(service.greet(), OTHER)
    await until(lambda: refused.gone)
    assert not any(guest.gone for guest in guests)
    assert service.stats.rejected == {"connections full": 1}


async def test_the_silent_make_room_and_the_greeted_stay(house: House[Served]) -> None:
    service = house.serve(connections=8, idle_s=60.0)
    greeted = await house.join(range(6))
    silent = [await house.come() for _ in range(30)]
    late = await house.come(service.greet() + service.register(6), OTHER)
    await until(lambda: service.registered == 7)
    assert not any(guest.gone for guest in (*greeted, late))
    await until(lambda: all(guest.gone for guest in silent[:29]))
    assert not silent[29].gone
    assert service.stats.rejected == {"closed to make room": 29}


async def test_without_a_handshake_silence_ends_a_connection(house: House[Served]) -> None:
    service = house.serve()
    silent, greeted, idle = [await house.come(said) for said in (b"", service.greet(), service.idle)]
    await until(lambda: silent.gone and idle.gone)
    assert not greeted.gone
    assert service.stats.rejected == {"nothing said": 1}


async def test_single_bytes_do_not_extend_the_time_for_a_handshake(house: House[Served]) -> None:
    service = house.serve()
    guest = await house.come()
    for byte in service.long[:-1]:
        if guest.gone:
            break
        with contextlib.suppress(OSError):
            await guest.say(bytes([byte]))
        await asyncio.sleep(0.005)
    assert guest.gone
    assert service.stats.rejected == {service.half: 1}


@pytest.mark.parametrize("house", ALIVE, indirect=True)
async def test_a_greeted_client_hears_signs_of_life_and_must_give_some(
    house: House[Served],
) -> None:
    service = house.serve(silence_s=0.3)
    silent, alive = await house.come(service.greet()), await house.come(service.greet())
    while not silent.gone:
        await alive.say(service.idle)
        await asyncio.sleep(0.02)
    assert service.signs(silent.heard) >= 2
    assert not alive.gone
    assert service.stats.rejected == {}


async def test_half_an_object_is_counted(house: House[Served]) -> None:
    service = house.serve()
    for _ in range(3):
        (await house.come(service.register(1)[:-1])).close()
    (await house.come(service.greet() + service.register(1)[:-1])).close()
    await until(lambda: service.stats.rejected == {service.half: 4})
    assert service.registered == 0


async def test_an_illegal_object_ends_its_connection_after_those_before_it(house: House[Served]) -> None:
    service = house.serve()
    other = await house.come(service.greet())
    guest = await house.come(service.greet() + service.register(1) + service.illegal + service.register(2))
    await until(lambda: guest.gone)
    await other.say(service.register(3))
    await until(lambda: service.stats.rejected == {"framing": 1} and service.connections == 1)
    assert not other.gone
    assert service.accepted == 2


async def test_a_flood_of_registrations_from_one_host_leaves_room_for_others(house: House[Served]) -> None:
    service = house.serve(per_host=20)
    for first in range(0, 100, 10):
        await house.come(service.greet() + b"".join(map(service.register, range(first, first + 10))))
    await until(lambda: service.stats.rejected == {service.flooded: 80})
    await house.come(service.greet() + service.register(1000), OTHER)
    await until(lambda: service.registered == 21)


async def test_a_slow_reader_loses_only_its_own_and_is_counted(house: House[Served]) -> None:
    service = house.serve(queue_bytes=100_000, per_host=100_000)
    slow = await house.come(service.follow(1), receive_bytes=4096)
    slow.stop_reading()
    fast = await house.come(service.follow(2))
    source, numbers = await house.come(service.greet(), OTHER), count()
    while service.stats.dropped.get("queue full", 0) < 100:
        heard = len(fast.heard) + 90 * NEWS_BYTES
        await source.say(b"".join(map(service.news, islice(numbers, 90))))
        await until(partial(fast.has_heard, heard))
        assert service.stats.queued_bytes <= 100_000
    assert service.stats.dropped.keys() == {"queue full"}
    assert service.stats.balance() == 0
    assert not slow.gone


async def test_a_reader_that_takes_nothing_any_more_is_closed(house: House[Served]) -> None:
    service = house.serve(queue_bytes=100_000, per_host=100_000, stalled_s=0.5)
    stalled = await house.come(service.follow(1), receive_bytes=4096)
    stalled.stop_reading()
    source, numbers = await house.come(service.greet(), OTHER), count()
    await until(lambda: service.connections == 2)  # the kernel has both at once, the service one by one
    while service.connections == 2:
        if not service.stats.queued:  # else it stands still already
            await source.say(b"".join(map(service.news, islice(numbers, 200))))
        await asyncio.sleep(0.001)
    # The kernel may end it before its own buffer is full: then nothing is queued that could be dropped.
    await until(lambda: service.stats.queued == service.stats.queued_bytes == service.stats.balance() == 0)
    assert not source.gone


async def test_a_refusal_is_logged_once_for_each_reason_and_host(
    house: House[Served], caplog: pytest.LogCaptureFixture
) -> None:
    service = house.serve()
    object_, reason = service.refused
    with caplog.at_level(logging.WARNING, service.log):
        for host in (ONE, OTHER) * 20:
            await house.come(service.greet() + object_ + service.illegal, host)
        await until(lambda: service.stats.rejected == {reason: 40, "framing": 40})
    told = [record.getMessage().partition(": ")[2] for record in caplog.records]
    once = [f"refused from {host}: {why}" for host in (ONE, OTHER) for why in ("framing: ", reason)]
    assert len(told) == len(once)  # what was wrong with the framing is told behind it
    assert all(any(text.startswith(one) for text in told) for one in once)
