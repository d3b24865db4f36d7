"""Ours with the 2015 reference, both ways: its sockets send, read and fail exactly as the original."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial

import pytest

from bus.tmq import Client
from bus.tmq.broker import Broker, ClientRules
from bus.tmq.unread import LIMIT
from bus.tmq.wire import HELLO
from tests.helpers.peers import until
from tests.helpers.tmq import (
    SUBSCRIBE,
    ReferenceBroker,
    ReferenceClient,
    ReferenceSocket,
    packed,
    packet,
    processed,
    say,
)

HERE = "127.0.0.1:0"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
async def broker(stack: ExitStack) -> AsyncIterator[Broker]:
    made = Broker("tcp://127.0.0.1:0", heartbeat_s=0.05, connect_s=5.0)
    made.open(asyncio.get_running_loop())
    yield made
    made.close()
    assert made.stats.balance() == 0


def registered(broker: Broker, count: int) -> bool:
    return len(broker.registry) == count


def opened(stack: ExitStack, *sockets: ReferenceSocket) -> None:
    for sock in sockets:
        stack.enter_context(closing(sock))


@pytest.mark.parametrize("subscribe_first", [True, False])
async def test_reference_clients_meet_at_our_broker(
    broker: Broker, stack: ExitStack, subscribe_first: bool
) -> None:
    pub, sub = (ReferenceClient(broker.addresses[0]) for _ in range(2))
    opened(stack, pub, sub)
    steps = [sub.subscribe, pub.publish]
    for step in steps if subscribe_first else steps[::-1]:
        known = len(broker.registry)
        step(1, 2)
        await until(partial(registered, broker, known + 1))
    await processed(lambda: pub.subscribers[1, 2], pub)
    assert pub.subscribers[1, 2] == {sub.address}
    # Byte for byte what the reference broker sends: nothing else ever comes to a reference client.
    assert pub.heard == [packet(0x05, (1, 2), packed(sub.address))]
    for number in range(3):
        pub.send((1, 2), b"%d" % number)
    await processed(lambda: len(sub.received[1, 2]) == 3, sub)
    assert sub.received[1, 2] == [b"0", b"1", b"2"]


async def test_our_broker_says_nothing_new_to_a_reference_client(broker: Broker, stack: ExitStack) -> None:
    """It only gets packets of type PUB|CACHE, with or without REMOVE, one for each connection."""
    pub, one, other = (ReferenceClient(broker.addresses[0]) for _ in range(3))
    opened(stack, pub, one, other)
    pub.publish(5)
    one.subscribe(5)
    other.subscribe(5)
    await processed(lambda: len(pub.subscribers[5,]) == 2, pub)
    one.close()
    async with Client(brokers=broker.urls, listen=HERE) as ours:

        def is_known() -> bool:
            ours.send((5,), b"hello")  # finds one of them gone, and reports it: again, if that was lost
            return len(pub.subscribers[5,]) == 1

        await ours.publish((5,))
        await processed(is_known, pub, other)
        await processed(lambda: other.received[5,], pub, other)
    assert pub.subscribers[5,] == {other.address}
    assert {wire[0] for wire in pub.heard} == {0x05, 0x0D}
    assert set(other.received[5,]) == {b"hello"}


async def test_our_clients_and_the_reference_s_talk_through_our_broker(
    broker: Broker, stack: ExitStack
) -> None:
    pub, sub = (ReferenceClient(broker.addresses[0]) for _ in range(2))
    opened(stack, pub, sub)
    sub.subscribe(1, 2)
    async with Client(brokers=broker.urls, listen=HERE) as ours:
        await ours.subscribe((1,))
        pub.publish(1, 3)
        await processed(lambda: pub.subscribers[1, 3], pub)
        pub.send((1, 3), b"from the reference")
        assert await ours.receive() == ((1, 3), b"from the reference")
        await ours.publish((1, 2))
        await until(lambda: len(ours.subscribers((1, 2))) == 2)
        for number in range(5):
            await ours.publish((1, 2), b"%d" % number)
        await processed(lambda: len(sub.received[1, 2]) == 5, sub)
        assert sub.received[1, 2] == [b"0", b"1", b"2", b"3", b"4"]
        assert {len(wire) for wire in sub.heard} == {4 + 8 + 1}  # one packet a connection
        assert [(await ours.receive()).data for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
        assert ours.stats.balance() == 0


async def test_our_clients_work_with_the_reference_s_broker(stack: ExitStack) -> None:
    reference = ReferenceBroker()
    opened(stack, reference)

    async def beside(work: "asyncio.Future[bool]") -> bool:
        await processed(work.done, reference)
        return work.result()

    async with (
        Client(brokers=[reference.address], listen=HERE) as pub,
        Client(brokers=[reference.address], listen=HERE) as sub,
    ):

        def registrations() -> list[bytes]:
            """Return what came, each once, without greetings: a client says both again if that is slow."""
            return [wire for wire in dict.fromkeys(reference.heard) if wire[0] != HELLO]

        # Packets are exactly the reference's: its address unpacking fails on anything behind the address.
        assert await beside(asyncio.ensure_future(sub.subscribe((1, 2))))
        assert await beside(asyncio.ensure_future(sub.subscribe((7,))))
        assert await beside(asyncio.ensure_future(pub.publish((1, 2))))
        await processed(lambda: len(registrations()) == 3, reference)
        assert registrations() == [
            packet(0x46, (1, 2), packed(sub.address)),
            packet(0x46, (7,), packed(sub.address)),
            packet(0x45, (1, 2), packed(pub.address)),
        ]
        assert pub.broker == reference.address
        await until(lambda: pub.subscribers((1, 2)))
        await pub.publish((1, 2), b"hello")
        assert await sub.receive() == ((1, 2), b"hello")


async def test_a_reference_client_meets_ours_at_the_reference_s_broker(stack: ExitStack) -> None:
    reference = ReferenceBroker()
    theirs = ReferenceClient(reference.address)
    opened(stack, reference, theirs)
    async with Client(brokers=[reference.address], listen=HERE) as ours:
        theirs.subscribe(4)
        theirs.publish(9)
        publishing = asyncio.ensure_future(ours.publish((4,)))
        subscribing = asyncio.ensure_future(ours.subscribe((9,)))
        await processed(lambda: ours.subscribers((4,)) and theirs.subscribers[9,], reference, theirs)
        await processed(lambda: publishing.done() and subscribing.done(), reference, theirs)
        await ours.publish((4,), b"to them")
        theirs.send((9,), b"to us")
        assert (await ours.receive()).data == b"to us"
        await processed(lambda: theirs.received[4,] == [b"to them"], theirs)


async def test_two_of_ours_send_many_packets_on_one_connection_whatever_the_broker(stack: ExitStack) -> None:
    reference = ReferenceBroker()
    opened(stack, reference)
    async with (
        Client(brokers=[reference.address], listen=HERE, verdict_s=20.0) as pub,
        Client(brokers=[reference.address], listen=HERE, queue_messages=5000) as sub,
    ):
        work = [asyncio.ensure_future(sub.subscribe((1,)))]
        await processed(work[0].done, reference)
        work.append(asyncio.ensure_future(pub.publish((1,))))
        await processed(lambda: work[1].done() and pub.subscribers((1,)), reference)
        for number in range(2000):
            await pub.publish((1,), number.to_bytes(4, "big"))
        await until(lambda: sub.inbox.queued == 2000)
        got = [int.from_bytes((await sub.receive()).data, "big") for _ in range(2000)]
        assert got == list(range(2000))
        assert sub.node.accepted <= 3  # the broker's, and one for all that was sent


async def test_exact_patterns_for_clients_that_fail_on_longer_ones(stack: ExitStack) -> None:
    careful = Broker("tcp://127.0.0.1:0", rules=ClientRules(classic_prefixes=False))
    careful.open(asyncio.get_running_loop())
    try:
        theirs = ReferenceClient(careful.addresses[0])
        opened(stack, theirs)
        theirs.subscribe(1)
        await until(lambda: len(careful.registry) == 1)
        async with (
            Client(brokers=careful.urls, listen=HERE) as pub,
            Client(brokers=careful.urls, listen=HERE) as sub,
        ):
            await sub.subscribe((1,))
            await pub.publish((1, 2))
            await pub.publish((1,))
            assert pub.subscribers((1, 2)) == [sub.address]
            assert set(pub.subscribers((1,))) == {sub.address, theirs.address}
    finally:
        careful.close()


@asynccontextmanager
async def told_first(broker: Broker, stack: ExitStack) -> AsyncIterator[tuple[ReferenceClient, Client]]:
    """Give a subscriber of 2015, and a client of ours that has sent it one message."""
    sub = ReferenceClient(broker.addresses[0])
    opened(stack, sub)
    sub.subscribe(1, 2)
    async with Client(brokers=broker.urls, listen=HERE, connect_s=20.0) as ours:
        await ours.publish((1, 2))
        await until(lambda: ours.subscribers((1, 2)))
        ours.send((1, 2), b"first")
        await processed(lambda: sub.received[1, 2], sub)
        yield sub, ours


async def test_a_burst_waits_where_the_reference_has_no_room_for_it(broker: Broker, stack: ExitStack) -> None:
    """Its backlog is 5: beyond, the kernel drops the attempt to connect, and tries again after a second."""
    async with told_first(broker, stack) as (sub, ours):
        for number in range(50):
            ours.send((1, 2), b"%d" % number)
        await until(lambda: ours.stats.sent == 1 + LIMIT)
        for _ in range(100):
            await asyncio.sleep(0)
        assert ours.stats.sent == 1 + LIMIT
        await processed(lambda: len(sub.received[1, 2]) == 51, sub)
        assert sub.received[1, 2] == [b"first", *(b"%d" % number for number in range(50))]
        assert (ours.stats.sent, ours.stats.dropped) == (51, {})


async def test_a_loop_that_is_busy_passes_as_many_as_there_is_room_for_each_time(
    broker: Broker, stack: ExitStack
) -> None:
    async with told_first(broker, stack) as (sub, ours):
        await until(lambda: not ours.node.peers[sub.address].busy)
        for number in range(3 * LIMIT):
            ours.send((1, 2), b"%d" % number)
        await asyncio.sleep(0)
        assert ours.stats.sent == 1 + LIMIT
        sub.process()  # what was sent is there, so it does not block
        for _ in range(2):  # the loop sees that connections were closed, then this test is next
            await asyncio.sleep(0)
        assert ours.stats.sent == 1 + 2 * LIMIT
        await processed(lambda: len(sub.received[1, 2]) == 1 + 3 * LIMIT, sub)
        assert sub.received[1, 2] == [b"first", *(b"%d" % number for number in range(3 * LIMIT))]


async def test_a_client_that_closes_no_connection_gets_all_the_same(broker: Broker, stack: ExitStack) -> None:
    """Where nothing frees objects that are out of use, as on some small boards."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    listener.setblocking(False)
    say(broker.addresses[0], packet(SUBSCRIBE, (1,), packed(listener.getsockname())))
    await until(lambda: len(broker.registry) == 1)
    loop = asyncio.get_running_loop()
    async with Client(brokers=broker.urls, listen=HERE, connect_s=0.2, verdict_s=0.05) as ours:
        await ours.publish((1,))
        for number in range(3 * LIMIT):
            ours.send((1,), b"%d" % number)
        for number in range(3 * LIMIT):
            connection, _ = await asyncio.wait_for(loop.sock_accept(listener), 20)
            stack.callback(connection.close)
            assert await loop.sock_recv(connection, 2056) == packet(2, (1,), b"%d" % number)
