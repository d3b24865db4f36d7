"""Clients that are broken, greedy or hostile: all over TCP is bounded and counted, and others are served."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

import msgpack

from devices.syndication.bounds import Bounds
from devices.syndication.wire.messages import REFUSED
from tests.devices.syndication.tcp_clients import (
    Home,
    TcpGuest,
    difference,
    home,
    publication_of,
    query_of,
)
from tests.helpers.peers import until

OTHER = "127.0.0.2"
LEGAL = {*REFUSED, "framing", "half a message", "nothing said", "connections full"}


class Pair:
    """A producer and its subscriber, which have to be served whatever others do."""

    def __init__(self, producer: TcpGuest, subscriber: TcpGuest) -> None:
        self._producer, self._subscriber = producer, subscriber
        self._number = 0

    async def meet(self) -> None:
        """Have one more publication delivered."""
        self._number += 1
        await self._producer.publish("me", {}, self._number)
        await self._subscriber.told(["me", {}, self._number])


async def pair(here: Home) -> Pair:
    producer, subscriber = await here.guest(host=OTHER), await here.guest(host=OTHER)
    await subscriber.subscribe("me = 1")
    await subscriber.told(difference())
    await producer.publish("me", {"me": 1}, 0)
    await subscriber.told(difference(["me"]), ["me", {"me": 1}, 0])
    return Pair(producer, subscriber)


def anything(rng: random.Random, depth: int = 0) -> Any:
    """Return any object of MessagePack."""
    some = range(rng.randrange(5))
    kinds: list[Callable[[], Any]] = [
        lambda: rng.randrange(-(2**63), 2**64),
        rng.random,
        lambda: rng.randbytes(rng.randrange(40)),
        lambda: rng.choice([None, True, "has Room", "", 'a like "("', "x" * 30]),
        lambda: msgpack.ExtType(rng.randrange(128), rng.randbytes(3)),
        lambda: [anything(rng, depth + 1) for _ in some],
        lambda: {rng.choice("abc"): anything(rng, depth + 1) for _ in some},
    ]
    return kinds[rng.randrange(len(kinds) - 2 * (depth > 5))]()


def garbage(rng: random.Random) -> bytes:
    """Return what one broken client says."""
    tag = rng.choice([b"", b"\0", b"\1", b"\2", b"\3"])
    objects = b"".join(tag + msgpack.packb(anything(rng)) for _ in range(20))
    begun = b"\x93\xa1a\x80"
    return rng.choice([
        objects,
        rng.choice([b"\x93", b"\xdc", b"\0", b"\xa5"]) + rng.randbytes(2000),
        begun + b"\x91" * 60_000,  # deep
        begun + b"\xc6\x40\0\0\0" + bytes(1000),  # of 1 GiB
        begun + b"\xdd\xff\xff\xff\xff" + bytes(1000),  # of four thousand million items
        begun,
        b"",
    ])  # fmt: skip


async def test_broken_clients_are_refused_or_ended_and_others_are_served() -> None:
    rng = random.Random(16)
    async with home() as here:
        good = await pair(here)
        for _ in range(150):
            guest = await here.guest(tagged=True)
            guest.stop_reading()
            await guest.say(garbage(rng))
            await good.meet()
            guest.close()
        await until(lambda: here.server.counts["connections"] == 2)
        await good.meet()
        rejected = here.server.stats.rejected
        assert rejected.keys() <= LEGAL
        assert {"framing", "publication", "query", "half a message", "nothing said"} < rejected.keys()


async def flood(here: Home, connections: int, said: Iterable[bytes]) -> list[TcpGuest]:
    """Have several clients of one host say all this at once."""
    data, guests = b"".join(said), []
    for _ in range(connections):
        guests.append(await here.guest())
        await guests[-1].say(data)
    return guests


async def test_a_flood_of_producers_leaves_room_and_time_for_others() -> None:
    async with home(Bounds(producers=1000, speakers_per_client=300, speakers_per_host=500)) as here:
        good = await pair(here)
        await flood(here, 4, (publication_of(f"f{n}", {"n": n}, n) for n in range(2000)))
        while here.server.stats.received < 8000 or here.server.waiting:
            await good.meet()
        rejected = here.server.stats.rejected
        assert rejected.keys() - {"speakers of one client"} == {"speakers of one host"}
        assert here.server.stats.received - sum(rejected.values()) > 500
        assert here.server.counts["producers"] <= 501
        other = await here.guest(host=OTHER)
        await other.publish("mine", {"Room": 1}, 1)
        await until(lambda: here.server.exchange.book.producers.find("mine") is not None)


async def test_producers_that_come_and_go_take_the_place_of_those_that_are_gone_only() -> None:
    async with home(Bounds(producers=50)) as here:
        good = await pair(here)
        for first in range(0, 200, 40):
            (guest,) = await flood(here, 1, (publication_of(f"f{first + n}", {"n": n}) for n in range(40)))
            await good.meet()
            guest.close()
            await until(lambda: here.server.counts["producers"] == 1)
        await good.meet()
        assert here.server.counts["remembered"] == 49
        assert here.server.stats.rejected == {}


async def test_a_flood_of_queries_leaves_room_and_time_for_others() -> None:
    async with home(Bounds(queries=20, queries_per_host=10)) as here:
        good = await pair(here)
        guests = await flood(here, 15, (query_of(f"n = {n} or Room = {n}", False) for n in range(200)))
        while not all(len(guest.said) == 200 for guest in guests):
            await good.meet()
        assert here.server.counts["subscriptions"] == 11
        assert here.server.stats.rejected == {"queries of one host": 5 * 200}
        refused = [guest.said for guest in guests if {"Error": "queries of one host"} in guest.said]
        assert [len(said) for said in refused] == [200] * 5
        other = await here.guest(host=OTHER)
        await other.subscribe("has Room")
        await other.told(difference())


async def test_costly_patterns_over_costly_metadata_are_bounded_together() -> None:
    text = "".join(random.Random(1).choices("ab", k=1000))
    async with home(Bounds(instructions=3000, change_cost=2_000_000)) as here:
        good = await pair(here)
        producer = await here.guest()
        await producer.say(b"".join(publication_of(f"p{n}", {"Text": text}) for n in range(20)))
        guests = [
            (await flood(here, 1, [query_of(f'Text like "a[ab]{{{number}}}c"', False)]))[0]
            for number in range(80, 110)
        ]
        while not all(guest.said for guest in guests):
            await good.meet()
        answers = [guest.said[0] for guest in guests]
        assert {"Error": "patterns on one key"} in answers
        assert difference() in answers
        await producer.publish("p1", {"Text": text[::-1]})
        await until(lambda: "metadata too costly" in here.server.stats.rejected)
        await good.meet()
        assert here.server.stats.rejected["metadata too costly"] == 1


async def test_the_silent_and_half_open_make_room() -> None:
    async with home(connections=8, idle_s=60.0) as here:
        good = await pair(here)
        silent = [await here.guest() for _ in range(10)]
        half = [await here.guest() for _ in range(10)]
        for guest in half[4:]:
            await guest.say(b"\x93\xa1a")
        late = await here.guest()
        await late.subscribe("")
        await late.told(difference(["me"]))
        await good.meet()
        await until(lambda: all(guest.gone for guest in silent))
        assert here.server.counts["connections"] <= 8


async def test_a_subscriber_that_takes_no_difference_is_ended_and_its_ledger_balances() -> None:
    async with home(queue_bytes=50_000) as here:
        good, deaf = await pair(here), await here.guest()
        deaf.stop_reading()
        await deaf.subscribe("")
        producer = await here.guest()
        for number in range(100_000):
            if here.server.stats.rejected:
                break
            await producer.publish("p", {"n": number}, "x" * 10_000)  # it enters and leaves no set
            await producer.publish("q", {"n": None if number % 2 else 1}, 1)
            await good.meet()
            if number == 5:
                await deaf.subscribe("has n")
        assert here.server.stats.rejected == {"too slow for a difference": 1}
        assert here.server.stats.dropped.keys() == {"queue full", "closed"}
        await good.meet()
