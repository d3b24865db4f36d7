"""Several brokers: clients move to the next and return, and brokers share their registrations."""

import asyncio
from contextlib import closing, suppress
from itertools import count

import pytest

from bus.tmq.broker import Broker, ClientRules, probing
from bus.tmq.wire import HELLO
from bus.wire.frame import SUB, pack
from tests.bus.tmq.broker.broker_house import FAST, House, delivered, free_urls, kill
from tests.helpers.peers import until
from tests.helpers.tmq import ReferenceClient


async def test_moving_to_the_next_broker_and_back(house: House) -> None:
    [where] = free_urls(1)
    first, second = house.broker(where), house.broker()
    pub, sub = await house.client(first, second), await house.client(first, second)
    await sub.subscribe((1,))
    await pub.publish((1, 2))
    first.close()
    await until(lambda: pub.broker == sub.broker == second.addresses[0])
    await until(lambda: len(second.registry) == 2)
    await delivered(pub, sub)
    late = await house.client(first, second)  # a client that comes meanwhile is found too
    await late.subscribe((1, 2))
    await until(lambda: set(pub.subscribers((1, 2))) == {sub.address, late.address})
    again = house.broker(where)
    await until(lambda: pub.broker == sub.broker == late.broker == again.addresses[0])
    await until(lambda: len(again.registry) == 3)
    new = await house.client(again)
    await new.publish((1, 9))
    assert new.subscribers((1, 9)) == [sub.address]


async def test_a_broker_that_freezes_is_left_for_the_next(house: House) -> None:
    """As after SIGSTOP: it has greeted and then sends nothing more, though its kernel accepts all data."""
    frozen = await asyncio.start_server(greet_and_freeze, "127.0.0.1", 0)
    where = f"tcp://127.0.0.1:{frozen.sockets[0].getsockname()[1]}"
    second = house.broker()
    client = await house.client(where, second, wait_s=20.0)
    assert await client.subscribe((1,))
    assert client.broker == second.addresses[0]
    assert client.node.uplink.moves == 1
    client.close()
    frozen.close()


async def greet_and_freeze(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(16)
    writer.write(pack(HELLO, (), bytes.fromhex("0100009600000001")))
    with suppress(ConnectionError):
        while await reader.read(1000):
            pass
    writer.close()


async def test_without_any_broker_what_is_known_goes_on_and_a_restarted_one_learns_all(house: House) -> None:
    [where] = free_urls(1)
    broker = house.broker(where)
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await pub.publish((1, 2))
    broker.close()
    await until(lambda: pub.broker is None and sub.broker is None)
    await delivered(pub, sub)
    again = house.broker(where)
    await until(lambda: len(again.registry) == 2)


async def test_a_broker_that_comes_late(house: House) -> None:
    [where] = free_urls(1)
    pub, sub = await house.client(where, wait_s=0.05), await house.client(where, wait_s=0.05)
    assert not await sub.subscribe((1,))
    assert not await pub.publish((1,), b"nobody")
    assert pub.stats.dropped == {"no subscriber": 1}
    house.broker(where)
    await delivered(pub, sub, (1,))


@pytest.mark.parametrize("subscribe_first", [True, False])
async def test_brokers_share(house: House, subscribe_first: bool) -> None:
    urls = free_urls(2)
    one = house.broker(share_s=0.2)  # which names nobody
    two = house.broker(urls[0], peers=[*one.urls, urls[1]], share_s=0.2)
    three = house.broker(urls[1], peers=[*two.urls, *one.urls], share_s=0.2)
    pub, sub = await house.client(two), await house.client(three)
    await until(lambda: two.counts["peers"] == three.counts["peers"] == 2)
    steps = [sub.subscribe((1,)), pub.publish((1, 2))]
    for step in steps if subscribe_first else steps[::-1]:
        await step
    await until(lambda: pub.subscribers((1, 2)) == [sub.address])
    await delivered(pub, sub)
    await sub.unsubscribe((1,))
    await until(lambda: not pub.subscribers((1, 2)))


async def test_what_is_shared_ends_with_the_broker_that_said_it_and_does_not_loop(house: House) -> None:
    """Three brokers list all three, also themselves: each knows a registration once, and none for ever."""
    urls = free_urls(3)
    one, two, three = [house.broker(url, peers=urls, share_s=0.1) for url in urls]
    await until(lambda: all(broker.counts["peers"] == 2 for broker in (one, two, three)))
    sub = await house.client(one)
    await sub.subscribe((1,))
    await until(lambda: [len(b.registry) for b in (one, two, three)] == [1, 1, 1])
    assert list(two.registry.own()) == list(three.registry.own()) == []
    one.close()
    kill(sub)
    await until(lambda: two.counts["deaths"] == three.counts["deaths"] == 1)
    assert len(two.registry) == len(three.registry) == 0


async def test_clients_of_a_dead_broker_that_live_are_adopted_and_the_dead_are_told(house: House) -> None:
    """Longer than the lifetime of what it shared: its clients of 2015 register nowhere again."""
    urls = free_urls(2)
    one, two = [house.broker(url, peers=urls, share_s=0.1) for url in urls]
    await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
    publisher = await house.client(two)
    await publisher.publish((1,))
    with closing(ReferenceClient(one.addresses[0])) as sub, closing(ReferenceClient(one.addresses[0])) as pub:
        dead = ReferenceClient(one.addresses[0])
        for theirs in (sub, dead):
            theirs.subscribe(1)
        pub.publish(1)
        await until(lambda: set(publisher.subscribers((1,))) == {sub.address, dead.address})
        await until(lambda: len(two.registry) == 4)
        one.close()
        dead.close()
        await until(lambda: two.counts["adopted"] == 2 and two.counts["deaths"] == 1)
        await until(lambda: publisher.subscribers((1,)) == [sub.address])
        assert (two.counts["expired"], two.counts["probes"]) == (0, 3)
        again = house.broker(urls[0], peers=urls, share_s=0.1)
        await until(lambda: len(again.registry) == 3)
        late = await house.client(again)
        await late.subscribe((1,))
        async with asyncio.timeout(20):
            while late.address not in pub.subscribers[1,]:
                await asyncio.to_thread(pub.process)
                await asyncio.sleep(0.001)
        await publisher.publish((1,), b"now")
        async with asyncio.timeout(20):
            while b"now" not in sub.received[1,]:
                await asyncio.to_thread(sub.process)
                await asyncio.sleep(0.001)
        assert sub.received[1,] == [b"", b"now"]


async def test_a_thousand_clients_of_a_dead_broker_are_looked_at_some_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "LAPSED_AT_ONCE", 4)
    urls, numbers = free_urls(1), count(7)
    monkeypatch.setattr("random.getrandbits", lambda bits: next(numbers))
    _, two = house.broker(urls[0]), house.broker(peers=urls, heartbeat_s=60.0)
    await until(lambda: two.counts["peers"] == 1)
    where = [("127.0.0.1", port) for port in range(1, 10)]
    for address in where:
        two.registry.share(SUB, (1,), address, 7, 0.0)
    seen: list[int] = []
    for _ in range(3):
        two.revise(urls, ClientRules(), 61.0 + len(seen))
        seen.append(two.counts["probes"])
    assert seen == [4, 8, 9]
    await until(lambda: two.counts["deaths"] == 9)


class Cable:
    """A way to a broker that can be cut, and mended at the same address."""

    def __init__(self, url: str) -> None:
        self._to = int(url.rpartition(":")[2])
        self._writers: list[asyncio.StreamWriter] = []
        [self.url] = free_urls(1)

    async def mend(self) -> None:
        port = int(self.url.rpartition(":")[2])
        self._server = await asyncio.start_server(self._join, "127.0.0.1", port)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, far[1]]
        with suppress(ConnectionError):
            await asyncio.gather(self._pass(reader, far[1]), self._pass(far[0], writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    def cut(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()


async def test_brokers_that_are_cut_off_from_each_other_and_meet_again(house: House) -> None:
    """What was taken back meanwhile ends at the broker that adopted it."""
    urls = free_urls(2)
    cables = [Cable(url) for url in urls]
    for cable in cables:
        await cable.mend()
    one, two = [
        house.broker(url, peers=[cable.url], share_s=0.1)
        for url, cable in zip(urls, cables[::-1], strict=True)
    ]
    await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
    pub, sub = await house.client(two), await house.client(one)
    await pub.publish((1,))
    for pattern in ((1,), (2,)):
        await sub.subscribe(pattern)
    await until(lambda: len(two.registry) == 3)
    for cable in cables:
        cable.cut()
    assert pub.subscribers((1,)) == [sub.address]
    await until(lambda: two.counts["adopted"] == 2)
    await delivered(pub, sub, (1,))
    await sub.unsubscribe((1,))
    for cable in cables:
        await cable.mend()
    await until(lambda: not pub.subscribers((1,)))
    await until(lambda: [len(broker.registry) for broker in (one, two)] == [2, 2])
    assert [key for key in two.registry.own() if key[2] == sub.address] == []
    for cable in cables:
        cable.cut()


async def test_clients_of_a_broker_that_is_no_peer_any_more_are_forgotten(house: House) -> None:
    one, two = [house.broker(share_s=0.1) for _ in range(2)]
    two.revise(one.urls, ClientRules())
    one.revise(two.urls, ClientRules())
    await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
    sub = await house.client(one)
    await sub.subscribe((1,))
    await until(lambda: len(two.registry) == 1)
    for broker in (one, two):
        broker.revise([], ClientRules())
    await until(lambda: two.counts["expired"] == 1)
    assert (two.counts["adopted"], len(one.registry)) == (0, 1)


async def test_brokers_find_each_other_at_once_when_one_starts(house: House) -> None:
    """No heartbeat falls into this test, and the first has found nobody and pauses."""
    urls = free_urls(2)
    slow = {"heartbeat_s": 60.0, "retry_min_s": 60.0, "retry_max_s": 60.0}
    one = house.broker(urls[0], peers=urls, **slow)
    await until(lambda: one.ledgers["brokers"].dropped == {"peer gone": 1})
    sub = ReferenceClient(one.addresses[0])
    with closing(sub):
        sub.subscribe(1)
        two = house.broker(urls[1], peers=urls, **slow)
        await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
        await until(lambda: len(two.registry) == 1)


async def test_a_broker_that_starts_again_gets_the_clients_of_2015_back_from_another_one(
    house: House,
) -> None:
    urls = free_urls(2)
    one, two = [house.broker(url, peers=urls) for url in urls]
    await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
    with closing(ReferenceClient(one.addresses[0])) as sub, closing(ReferenceClient(one.addresses[0])) as pub:
        sub.subscribe(1)
        pub.publish(1, 2)
        await until(lambda: len(two.registry) == 2)
        one.close()
        again = house.broker(urls[0], peers=urls)
        await until(lambda: len(list(again.registry.own())) == 2)
        late = await house.client(again)
        await late.publish((1, 3))
        assert late.subscribers((1, 3)) == [sub.address]
        await late.subscribe((1, 2))
        async with asyncio.timeout(20):
            while late.address not in pub.subscribers[1, 2]:
                await asyncio.to_thread(pub.process)
                await asyncio.sleep(0.001)


async def test_a_death_is_told_to_the_other_brokers(house: House) -> None:
    """The other broker checks too: a client that one broker cannot reach may be alive."""
    urls = free_urls(2)
    one, two = [house.broker(url, peers=urls) for url in urls]
    pub, dead, alive = await house.client(two), await house.client(one), await house.client(one)
    await until(lambda: one.counts["peers"] == two.counts["peers"] == 1)
    for client in (dead, alive):
        await client.subscribe((1,))
    await pub.publish((1,))
    await until(lambda: set(pub.subscribers((1,))) == {dead.address, alive.address})
    kill(dead)
    await until(lambda: pub.subscribers((1,)) == [alive.address])
    assert one.counts["deaths"] == two.counts["deaths"] == 1
    assert pub.stats.sent == 0  # no client sent to it or reported it


async def test_brokers_know_each_other_by_name_and_start_although_a_name_cannot_be_looked_up(
    house: House,
) -> None:
    one, other = free_urls(2)
    named = [url.replace("127.0.0.1", "localhost") for url in (one, other)]
    peers = [*named, "tcp://nobody.invalid:9942"]
    first, second = house.broker(one, peers=peers), house.broker(other, peers=peers)
    await until(lambda: first.counts["peers"] == second.counts["peers"] == 1)
    sub = await house.client(first)
    await sub.subscribe((1,))
    await until(lambda: len(second.registry) == 1)


async def test_a_peer_that_is_listed_twice_is_dialled_once_and_peers_may_come_before_it_is_open(
    house: House,
) -> None:
    first, second = house.broker(), house.broker()
    url, other = first.urls[0], second.urls[0]
    twice = house.broker(peers=[url, url])
    await until(lambda: twice.counts["peers"] == 1 and first.counts["connections"] == 1)
    twice.revise([url, other, other], ClientRules())
    await until(lambda: twice.counts["peers"] == 2)
    assert (first.counts["accepted"], second.counts["accepted"]) == (1, 1)
    early = Broker("tcp://127.0.0.1:0", [url], **FAST)  # type: ignore[arg-type]
    early.revise([other], ClientRules())
    early.open(asyncio.get_running_loop())
    house.brokers.append(early)
    await until(lambda: early.counts["peers"] == 1 and second.counts["accepted"] == 2)
    assert first.counts["accepted"] == 1


async def test_an_address_that_was_the_brokers_own_is_dialled_again_after_a_reload(house: House) -> None:
    urls = free_urls(3)
    one, _ = house.broker(urls[0], peers=urls[:2], share_s=0.1), house.broker(urls[1])
    await until(lambda: one.counts["peers"] == 1)
    one.listen(urls[2])
    one.leave(urls[0])
    house.broker(urls[0])  # another one, in its place
    one.revise(urls[:2], ClientRules())
    await until(lambda: one.counts["peers"] == 2)
