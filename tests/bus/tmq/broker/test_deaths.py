"""Peers of a broker that die, freeze, return, or are reported dead."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from bus.tmq import Client
from bus.tmq.broker import probing
from bus.tmq.wire import DEAD, HELLO, SUBSCRIBE, pack_address
from bus.wire.frame import pack
from tests.bus.tmq.broker.broker_house import FAST, HERE, House, delivered, kill
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import ReferenceClient, StarvedClient, say


@pytest.fixture
def starved() -> Iterator[StarvedClient]:
    with closing(StarvedClient()) as made:
        yield made


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


@pytest.mark.parametrize("turns", range(8))
async def test_a_client_that_closes_at_any_moment_is_forgotten(house: House, turns: int) -> None:
    """Also while it cannot tell yet whether the broker takes a second packet on the connection."""
    broker = house.broker()
    client = Client([broker.urls[0]], listen=HERE, **FAST)  # type: ignore[arg-type]
    client.open(asyncio.get_running_loop())
    subscribing = asyncio.create_task(client.subscribe((1,)))
    for _ in range(turns):
        await asyncio.sleep(0)
    client.close()
    subscribing.cancel()
    await (await house.client(broker)).subscribe((2,))  # by now the broker has taken all that was said
    await until(lambda: broker.registry.subscribers((1,)) == [])


async def test_a_client_that_dies_just_after_it_was_found_alive_is_noticed(house: House) -> None:
    """A process that is killed loses its connections first, and takes new ones for a moment."""
    broker = house.broker()
    pub, sub = await house.client(broker), await house.client(broker)
    await sub.subscribe((1,))
    await pub.publish((1, 2))
    assert pub.subscribers((1, 2)) == [sub.address]
    sub.node.uplink.close()
    await until(lambda: sub.node.accepted >= 1)
    assert broker.counts["probes"] >= 1
    assert broker.counts["deaths"] == 0
    kill(sub)
    await until(lambda: pub.subscribers((1, 2)) == [])
    assert broker.counts["deaths"] == 1


async def test_a_middlebox_that_takes_the_registrations_and_closes_delays_them_only(house: House) -> None:
    """A broker of 2015 behaves like that. Who it was shows when the client registers again, soon."""
    url = f"tcp://127.0.0.1:{(port := free_port())}"
    with socket.create_server(("127.0.0.1", port)) as middlebox:
        sub = await house.client(url)
        subscribing = asyncio.create_task(sub.subscribe((1,)))
        loop = asyncio.get_running_loop()
        middlebox.setblocking(False)
        connection, _ = await loop.sock_accept(middlebox)
        while len(await loop.sock_recv(connection, 4096)) == 0:
            await asyncio.sleep(0)
        connection.close()
    broker = house.broker(url)
    await subscribing
    await until(lambda: len(broker.registry) == 1)


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
    """A subscriber accepts and never reads: its queue fills, and the rest is dropped and counted."""
    broker = house.broker()
    pub = await house.client(broker, queue_bytes=100_000, connect_s=60.0, heartbeat_s=5.0)
    sub = await house.client(broker, heartbeat_s=5.0)
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


async def test_a_subscriber_that_restarts_is_streamed_to_again(house: House) -> None:
    """Nobody is given up as silent: a test that stands still for that long would lose messages."""
    broker = house.broker(heartbeat_s=5.0)
    where = f"127.0.0.1:{free_port()}"
    pub, sub = [await house.client(broker, listen=listen, heartbeat_s=5.0) for listen in (HERE, where)]
    await sub.subscribe((1,))
    await delivered(pub, sub, (1,))
    kill(sub)
    again = await house.client(broker, listen=where, heartbeat_s=5.0)
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
    await until(lambda: uplink.objects > 8 and stream.objects > 8)  # twice the silence that ends a connection
    assert not uplink.closed
    assert not stream.closed


async def test_a_client_that_freezes_is_looked_at_and_kept(house: House) -> None:
    """Its kernel still accepts connections: the client is not dead, but its silent connection is closed."""
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
        assert broker.counts["deaths"] == 0  # it is not checked again so soon


async def test_a_starved_client_that_answers_a_second_time_is_kept(
    house: House, starved: StarvedClient
) -> None:
    broker = house.broker(connect_s=0.05, doubt_s=3.0)  # it has room again by then, also after a stall
    where = pack_address(starved.address)
    say(broker.addresses[0], pack(SUBSCRIBE, (1,), where))
    await until(lambda: len(broker.registry) == 1)
    say(broker.addresses[0], pack(DEAD, (), where))
    await until(lambda: broker.counts["doubted"] == 1)
    async with asyncio.timeout(20):
        while not starved.messages:
            await asyncio.to_thread(starved.process)
    assert starved.messages == [b""]
    assert (broker.counts["doubted"], broker.counts["deaths"], len(broker.registry)) == (0, 0, 1)


async def test_a_client_that_never_answers_is_removed_however_often_it_is_reported(
    house: House, starved: StarvedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that a new report ends would never come to its end."""
    monkeypatch.setattr(probing, "AGAIN_S", 0.0)
    broker = house.broker(connect_s=0.1, doubt_s=0.1)
    where = pack_address(starved.address)
    say(broker.addresses[0], pack(SUBSCRIBE, (1,), where))
    await until(lambda: len(broker.registry) == 1)
    async with asyncio.timeout(20):
        while not broker.counts["deaths"]:
            say(broker.addresses[0], pack(DEAD, (), where))
            await asyncio.sleep(0.01)
    assert (len(broker.registry), broker.counts["doubted"]) == (0, 0)


async def test_a_client_moves_to_another_broker_without_a_doubt(house: House, starved: StarvedClient) -> None:
    broker = house.broker()
    url = "tcp://{}:{}".format(*starved.address)
    client = await house.client(url, broker, connect_s=0.05, doubt_s=60.0)
    await client.subscribe((1,))
    await until(lambda: client.broker == broker.addresses[0])
