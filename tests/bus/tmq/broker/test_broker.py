"""A broker and our clients: prefixes, the empty pattern, unsubscribing, bridges, inboxes."""

import asyncio

import pytest

from bus.errors import LinkError, TokenError
from bus.serving.connection import Connection
from bus.tmq.broker import Broker
from bus.tmq.wire import HELLO, SUBSCRIBE, pack_address
from bus.wire.frame import BRIDGE, pack
from tests.bus.tmq.broker.broker_house import House, delivered
from tests.helpers.peers import until
from tests.helpers.tmq import packet


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


async def test_unsubscribing_and_unpublishing(house: House) -> None:
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


async def test_a_connection_is_the_route_to_only_one_address(house: House) -> None:
    """A peer that greets with ever new addresses uses no memory."""
    broker = house.broker()
    _, writer = await asyncio.open_connection(*broker.addresses[0])
    for port in range(1, 2000):
        here = pack_address(("10.0.0.1", port))
        writer.write(pack(HELLO, (), bytes.fromhex("0100ffff00000001") + here))
    writer.write(pack(SUBSCRIBE, (1,), pack_address(("10.0.0.1", 1))))
    await until(lambda: len(broker.registry) == 1)
    assert broker.counts["routes"] == 1
    writer.close()


async def test_bridge_frames_reach_the_hook_both_ways(house: House) -> None:
    heard: list[tuple[bytes, Connection]] = []
    lost: list[str] = []
    broker = house.broker(on_bridge=lambda frame, connection: heard.append((frame, connection)))
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
    broker = house.broker(on_bridge=lambda frame, connection: connection.send(frame))
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


async def test_a_taken_port_is_an_error_that_leaves_nothing_open(house: House) -> None:
    broker = house.broker()
    second = Broker(["tcp://127.0.0.1:0", broker.urls[0]])
    with pytest.raises(LinkError, match="cannot listen: Address already in use"):
        second.open(asyncio.get_running_loop())
    second.close()


def test_reference_packets_are_ours() -> None:
    assert packet(0x46, (1, 2), b"x") == pack(SUBSCRIBE, (1, 2), b"x")
