"""The broker and our clients: prefixes, the empty pattern, taking back, deaths, several brokers, bridges."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, suppress

import pytest

from bus.errors import LinkError, TokenError
from bus.frame import BRIDGE, pack
from bus.tmq import Client
from bus.tmq.codec import DEAD, HELLO, SUBSCRIBE, pack_address
from bus.tmq.connection import Connection
from devices.broker import Broker
from tests.helpers.peers import until
from tests.helpers.tmq import ReferenceClient, packet, say

HERE = "127.0.0.1:0"
FAST = {"heartbeat_s": 0.05, "return_s": 0.1, "retry_max_s": 0.2}


class House:
    """Brokers and clients that are closed in the end, with every ledger looked at."""

    def __init__(self) -> None:
        self.brokers: list[Broker] = []
        self.clients: list[Client] = []
        self._stack = AsyncExitStack()

    def broker(self, listen: str = "tcp://127.0.0.1:0", **options: object) -> Broker:
        broker = Broker(listen, **{**FAST, **options})  # type: ignore[arg-type]
        broker.open(asyncio.get_running_loop())
        self.brokers.append(broker)
        return broker

    async def client(self, *brokers: Broker | str, **options: object) -> Client:
        urls = [broker if isinstance(broker, str) else broker.urls[0] for broker in brokers]
        client = Client(urls, **{"listen": HERE, **FAST, **options})  # type: ignore[arg-type]
        self.clients.append(await self._stack.enter_async_context(client))
        return client

    async def close(self) -> None:
        ledgers = [client.stats for client in self.clients]
        await self._stack.aclose()
        for broker in self.brokers:
            broker.close()
        assert [stats.balance() for stats in ledgers] == [0] * len(ledgers)
        assert all(stats.queued == stats.queued_bytes == 0 for stats in ledgers)
        assert all(client.inbox.balance() == 0 for client in self.clients)
        assert all(broker.stats.balance() == 0 for broker in self.brokers)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.close()


def free_urls(count: int) -> list[str]:
    """Ports that nobody listens on, for brokers that must know each other's before they open."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"tcp://127.0.0.1:{sock.getsockname()[1]}" for sock in taken]


def kill(client: Client) -> None:
    """As kill -9 does: every descriptor is closed, and nothing is said."""
    node = client.node
    node.published.clear()
    node.subscriptions.clear()
    client.close()


async def delivered(pub: Client, sub: Client, pattern: Iterable[int] = (1, 2)) -> None:
    """A new message arrives, whatever was lost before."""
    while sub.receive_nowait() is not None:
        pass

    async def publish() -> None:
        while True:
            await pub.publish(tuple(pattern), b"now")
            await asyncio.sleep(0.005)

    task = asyncio.create_task(publish())
    try:
        async with asyncio.timeout(20):
            assert (await sub.receive()).data == b"now"
    finally:
        task.cancel()


@pytest.mark.parametrize("subscribed", [(), (1,), (1, 2)])
@pytest.mark.parametrize("subscribe_first", [True, False])
async def test_prefixes_in_both_orders(
    house: House, subscribed: tuple[int, ...], subscribe_first: bool
) -> None:
    broker = house.broker()
    pub, sub, other = [await house.client(broker) for _ in range(3)]
    await other.subscribe((2,))
    steps = [sub.subscribe(subscribed), pub.publish((1, 2))]
    for step in steps if subscribe_first else steps[::-1]:
        assert await step
    await until(lambda: pub.subscribers((1, 2)) == [sub.address])
    await pub.publish((1, 2), b"first")
    assert await sub.receive() == ((1, 2), b"first")
    assert other.receive_nowait() is None


async def test_the_first_message_after_the_declaration_arrives(house: House) -> None:
    broker = house.broker()
    sub, pub = await house.client(broker), await house.client(broker)
    await sub.subscribe("fridge")
    assert await pub.publish(("fridge", "temp"), b"21.5")
    assert (await sub.receive()).data == b"21.5"
    assert pub.stats.dropped == {}


async def test_one_copy_for_two_subscriptions_that_both_match(house: House) -> None:
    broker = house.broker()
    sub, pub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await sub.subscribe(())
    await pub.publish((1, 2), b"once")
    await pub.publish((1, 2), b"twice")
    assert [(await sub.receive()).data for _ in range(2)] == [b"once", b"twice"]


async def test_the_empty_pattern_is_not_published(house: House) -> None:
    client = await house.client(house.broker())
    with pytest.raises(TokenError, match="empty"):
        await client.publish(())


async def test_taking_back(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await sub.subscribe((1, 2))
    await pub.publish((1, 2))
    assert pub.subscribers((1, 2)) == [sub.address]
    await sub.unsubscribe((1,))
    await delivered(pub, sub)  # the other subscription still covers it
    await sub.unsubscribe((1, 2))
    await until(lambda: not pub.subscribers((1, 2)))
    await pub.unpublish((1, 2))
    await sub.subscribe((1,))
    assert len(broker.registry) == 1
    assert pub.subscribers((1, 2)) == []


async def test_a_client_that_closes_takes_all_back(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe(())
    await pub.publish((1, 2))
    await pub.publish((3,))
    assert pub.subscribers((3,)) == [sub.address]
    sub.close()
    await until(lambda: not pub.subscribers((3,)) and not pub.subscribers((1, 2)))
    assert broker.counts["deaths"] == 0


async def test_a_dead_subscriber_is_noticed_by_the_broker_and_its_publishers_told(house: House) -> None:
    broker = house.broker()
    pub, sub, dead = [await house.client(broker) for _ in range(3)]
    for client in (sub, dead):
        await client.subscribe((1,))
    await pub.publish((1, 2))
    kill(dead)
    await until(lambda: pub.subscribers((1, 2)) == [sub.address])
    assert broker.counts["deaths"] == 1
    await delivered(pub, sub)


async def test_a_dead_reference_client_is_reported_by_its_publisher(house: House) -> None:
    broker = house.broker()
    pub = await house.client(broker)
    theirs = ReferenceClient(broker.addresses[0])
    theirs.subscribe(1)
    await until(lambda: len(broker.registry) == 1)
    await pub.publish((1,))
    assert pub.subscribers((1,)) == [theirs.address]
    theirs.close()
    assert broker.counts["probes"] == 0
    await pub.publish((1,), b"into the void")
    await until(lambda: not pub.subscribers((1,)))
    assert (broker.counts["deaths"], len(broker.registry)) == (1, 1)
    assert pub.stats.dropped == {"peer gone": 1}


async def test_a_false_report_is_not_believed(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await pub.publish((1,))
    for _ in range(20):
        say(broker.addresses[0], pack(DEAD, (), pack_address(sub.address)))
    await until(lambda: broker.counts["accepted"] >= 22 and broker.counts["probes"] == 1)
    say(broker.addresses[0], pack(DEAD, (), pack_address(("127.0.0.1", 1))))
    await until(lambda: broker.stats.rejected.get("report of a stranger") == 1)
    await delivered(pub, sub, (1,))
    assert (broker.counts["deaths"], broker.counts["probes"]) == (0, 1)


async def test_a_false_report_of_a_reference_client_costs_it_no_more_than_an_empty_message(
    house: House,
) -> None:
    broker = house.broker()
    sub, pub = (ReferenceClient(broker.addresses[0]) for _ in range(2))
    sub.subscribe(1)
    pub.publish(1)
    await until(lambda: len(broker.registry) == 2)
    for theirs in (sub, pub):
        say(broker.addresses[0], pack(DEAD, (), pack_address(theirs.address)))
    await until(lambda: broker.counts["probes"] == 2)
    async with asyncio.timeout(20):
        while not (sub.received[1,] and len(pub.heard) == 2):
            await asyncio.to_thread(sub.process)
            await asyncio.to_thread(pub.process)
    assert sub.received[1,] == [b""]
    assert pub.subscribers[1,] == {sub.address}
    assert broker.counts["deaths"] == 0
    sub.close()
    pub.close()


async def test_a_dead_subscriber_does_not_hold_up_the_others(house: House) -> None:
    """One that accepts and never reads: its queue fills, the rest is dropped and counted."""
    broker = house.broker()
    pub, sub = await house.client(broker, queue_bytes=100_000, connect_s=60.0), await house.client(broker)
    await sub.subscribe((1,))
    with socket.create_server(("127.0.0.1", 0), backlog=0) as frozen:
        say(broker.addresses[0], pack(SUBSCRIBE, (1,), pack_address(frozen.getsockname())))
        await until(lambda: len(broker.registry) == 2)
        await pub.publish((1,))
        await until(lambda: len(pub.subscribers((1,))) == 2)
        for _ in range(300):
            await pub.publish((1,), bytes(1000))
            async with asyncio.timeout(20):
                await sub.receive()
        assert set(pub.stats.dropped) <= {"queue full", "peer gone"}
        assert sum(pub.stats.dropped.values()) >= 100
        assert pub.stats.queued_bytes <= 100_000
        assert pub.stats.balance() == 0


async def test_moving_to_the_next_broker_and_back(house: House) -> None:
    first, second = house.broker(), house.broker()
    pub, sub = await house.client(first, second), await house.client(first, second)
    await sub.subscribe((1,))
    await pub.publish((1, 2))
    where = first.urls[0]
    first.close()
    await until(lambda: pub.broker == sub.broker == second.addresses[0])
    await until(lambda: len(second.registry) == 2)
    await delivered(pub, sub)
    late = await house.client(first, second)  # who comes meanwhile is found too
    await late.subscribe((1, 2))
    await until(lambda: set(pub.subscribers((1, 2))) == {sub.address, late.address})
    again = house.broker(where)
    await until(lambda: pub.broker == sub.broker == late.broker == again.addresses[0])
    await until(lambda: len(again.registry) == 3)
    new = await house.client(again)
    await new.publish((1, 9))
    assert new.subscribers((1, 9)) == [sub.address]


async def test_a_subscriber_that_restarts_is_streamed_to_again(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await delivered(pub, sub, (1,))
    host, port = sub.address
    kill(sub)
    again = await house.client(broker, listen=f"{host}:{port}")
    await again.subscribe((1,))
    await delivered(pub, again, (1,))
    before = again.node.accepted
    for _ in range(500):
        await pub.publish((1,), b"x")
    await until(lambda: again.node.stats.received >= 500)
    assert again.node.accepted <= before + 1


async def test_connections_stay_while_both_sides_say_so(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await pub.publish((1,), b"x")
    await sub.receive()
    uplink, stream = sub.node.uplink.connection, pub.node.peers[sub.address].connection
    assert uplink is not None
    assert stream is not None
    await until(lambda: uplink.frames > 8 and stream.frames > 8)  # twice the silence that ends one
    assert not uplink.closed
    assert not stream.closed


async def test_a_broker_that_freezes_is_left_for_the_next(house: House) -> None:
    """As SIGSTOP does: it has greeted, and then says nothing more, though its kernel takes everything."""
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


async def test_a_client_that_freezes_is_looked_at_and_kept(house: House) -> None:
    """Its kernel still takes connections: it is not dead, but its silent connection is given up."""
    broker = house.broker()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mine = pack_address(listener.getsockname())
        with socket.create_connection(broker.addresses[0]) as sock:
            sock.sendall(
                pack(SUBSCRIBE, (1,), mine) + pack(HELLO, (), bytes.fromhex("0100006400000001") + mine)
            )
            await until(lambda: broker.counts["probes"] == 1 and not broker.counts["connections"])
        assert len(broker.registry) == 1
        listener.close()
        say(broker.addresses[0], pack(DEAD, (), mine))
        assert broker.counts["deaths"] == 0  # not looked at again so soon


async def test_one_connection_is_the_way_to_one_address(house: House) -> None:
    """Who greets under ever new addresses takes no memory."""
    broker = house.broker()
    _, writer = await asyncio.open_connection(*broker.addresses[0])
    for port in range(1, 2000):
        here = pack_address(("10.0.0.1", port))
        writer.write(pack(HELLO, (), bytes.fromhex("0100ffff00000001") + here))
    writer.write(pack(SUBSCRIBE, (1,), pack_address(("10.0.0.1", 1))))
    await until(lambda: len(broker.registry) == 1)
    assert broker.counts["routes"] == 1
    writer.close()


async def test_without_any_broker_what_is_known_goes_on_and_a_restarted_one_learns_all(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await pub.publish((1, 2))
    where = broker.urls[0]
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
    one = house.broker(share_s=0.2)
    two = house.broker(peers=one.urls, share_s=0.2)
    one_again = house.broker(peers=[*two.urls, *one.urls], share_s=0.2)
    pub, sub = await house.client(two), await house.client(one_again)
    await until(lambda: two.counts["peers"] == 1 and one_again.counts["peers"] == 2)
    steps = [sub.subscribe((1,)), pub.publish((1, 2))]
    for step in steps if subscribe_first else steps[::-1]:
        await step
    await until(lambda: pub.subscribers((1, 2)) == [sub.address])
    await delivered(pub, sub)
    await sub.unsubscribe((1,))
    await until(lambda: not pub.subscribers((1, 2)))


async def test_what_is_shared_ends_with_the_broker_that_said_it_and_does_not_loop(house: House) -> None:
    """Three brokers, each with all three in its list, itself included: each knows it once, none for ever."""
    urls = free_urls(3)
    one, two, three = [house.broker(url, peers=urls, share_s=0.1) for url in urls]
    await until(lambda: all(broker.counts["peers"] == 2 for broker in (one, two, three)))
    sub = await house.client(one)
    await sub.subscribe((1,))
    await until(lambda: [len(b.registry) for b in (one, two, three)] == [1, 1, 1])
    assert list(two.registry.own()) == list(three.registry.own()) == []
    one.close()
    await until(lambda: two.counts["expired"] == three.counts["expired"] == 1)
    assert len(two.registry) == len(three.registry) == 0


async def test_a_death_is_told_to_the_other_brokers(house: House) -> None:
    """The other looks for itself too: what one broker cannot reach may live."""
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
    assert pub.stats.sent == 0  # nobody sent to it, nobody reported it


async def test_bridge_frames_reach_the_hook_both_ways(house: House) -> None:
    heard: list[tuple[bytes, Connection]] = []
    lost: list[str] = []
    broker = house.broker()
    broker.on_bridge = lambda frame, connection: heard.append((frame, connection))
    reader, writer = await asyncio.open_connection(*broker.addresses[0])
    frames = [pack(BRIDGE | 1, (number,), b"lease?") for number in range(3)]
    writer.write(b"".join(frames))
    await until(lambda: len(heard) == 3)
    assert [frame for frame, _ in heard] == frames
    connection = heard[0][1]
    assert connection.name.startswith("127.0.0.1:")
    greeting = await reader.readexactly(4 + 8)
    assert greeting[0] == 0x10
    connection.on_lost(lambda c: lost.append(c.name))
    assert connection.send(pack(BRIDGE | 2, (), b"yours"))
    assert await reader.readexactly(9) == pack(BRIDGE | 2, (), b"yours")
    writer.close()
    await until(lambda: lost == [connection.name])
    assert not connection.send(frames[0])
    connection.on_lost(lambda c: lost.append("again"))
    assert lost[1:] == ["again"]


async def test_bridge_frames_of_a_client_of_ours(house: House) -> None:
    answers: list[bytes] = []
    broker = house.broker()
    broker.on_bridge = lambda frame, connection: connection.send(frame)
    client = await house.client(broker, on_bridge=lambda frame, connection: answers.append(frame))
    await client.subscribe((1,))
    connection = client.node.uplink.connection
    assert connection is not None
    connection.send(pack(BRIDGE, (9,), b"x"))
    await until(lambda: answers == [pack(BRIDGE, (9,), b"x")])


async def test_iterating_ends_when_the_client_is_closed(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    for number in range(3):
        await pub.publish((1,), b"%d" % number)
    await until(lambda: sub.inbox.queued == 3)
    sub.close()
    assert [data async for _, data in sub] == [b"0", b"1", b"2"]


async def test_a_full_inbox_keeps_the_newest(house: House) -> None:
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker, queue_messages=10)
    await sub.subscribe((1,))
    for number in range(100):
        await pub.publish((1,), b"%d" % number)
    await until(lambda: sub.inbox.offered == 100)
    assert sub.inbox.dropped == {"queue full": 90}
    assert [(await sub.receive()).data for _ in range(10)] == [b"%d" % n for n in range(90, 100)]


def test_addresses_that_cannot_be() -> None:
    for bad in ("udp://h:1", "tcp://h:x", "tcp://[::1]:5", "tcp://127.0.0.1:70000"):
        with pytest.raises(LinkError):
            Broker(bad)


async def test_a_port_that_is_taken_is_said_and_nothing_is_left_open(house: House) -> None:
    broker = house.broker()
    second = Broker(["tcp://127.0.0.1:0", broker.urls[0]])
    with pytest.raises(LinkError, match="cannot listen: address already in use"):
        second.open(asyncio.get_running_loop())
    second.close()


def test_reference_packets_are_ours() -> None:
    assert packet(0x46, (1, 2), b"x") == pack(SUBSCRIBE, (1, 2), b"x")
