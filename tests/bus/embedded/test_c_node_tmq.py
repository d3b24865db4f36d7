"""The node in C as a client of TMQ brokers: its packets are those of the gateway's codec, its peers real."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.embedded.buscoupler_tmq import PUBLISH, SUBSCRIBE, Tmq
from bus.tmq import Client as OurClient
from bus.tmq import wire
from bus.tmq.broker import Broker
from bus.tmq.wire import ANSWER, ANSWERED, Hello, Refusal, pack_address, pack_hello, pack_refusal
from bus.wire.frame import pack
from bus.wire.pattern import Pattern
from tests.bus.embedded.cnode_support import build
from tests.bus.embedded.tmq_cnode import Client, SocketClient
from tests.bus.embedded.tmq_garbage import garbage
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import ReferenceBroker, ReferenceClient, processed

BROKER, OTHER, OWN = ("10.0.0.1", 9942), ("10.0.0.2", 9942), ("10.0.0.50", 9943)
PEER = ("10.0.0.3", 9943)
NUMBER = 0x01020304
HELLO = pack_hello(Hello(7, 3000))


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node, built here, and its cffi."""
    return build(tmp_path_factory.mktemp("cnode"))


def own_hello(flags: int = 0) -> bytes:
    return pack_hello(Hello(NUMBER, 3000, flags, OWN))


def greeted(client: Client) -> int:
    """Let the broker's connection be there, and the broker greet; return its link."""
    client.tick()
    link = next(iter(client.dialled))
    assert client.connect(link) == own_hello()
    client.said[link] = b""
    client.feed(link, HELLO)
    return link


def named(client: Client, link: int, *names: int) -> int:
    """Declare a pattern, let the broker name a peer, and publish: it is dialled. Return its link."""
    client.declare(*names)
    client.feed(link, pack(wire.ADD, names, pack_address(PEER)))
    assert client.publish(names, b"one") == 0
    return next(at for at, address in client.dialled.items() if address == pack_address(PEER))


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=20), st.binary(max_size=40))
def test_what_it_says_is_what_the_gateway_s_codec_says(c: Any, names: list[int], data: bytes) -> None:
    client, own = Client(c, BROKER), pack_address(OWN)
    assert [client.subscribe(*names), client.declare(5, *names)] == [0, 0]
    link = greeted(client)
    assert client.said[link] == pack(wire.SUBSCRIBE, names, own) + pack(wire.PUBLISH, [5, *names], own)
    client.said[link] = b""
    peer = named(client, link, 5, *names)
    assert client.connect(peer) == pack(wire.MESSAGE, [5, *names], b"one")
    assert client.publish((5, *names), data) == 0  # it waits: the peer may take one packet a connection
    client.said[peer] = b""
    client.feed(peer, HELLO)
    assert client.said[peer] == own_hello() + pack(wire.MESSAGE, [5, *names], data)
    client.said[link] = b""
    client.call("unsubscribe", *client.tokens(*names))
    client.call("undeclare", *client.tokens(5, *names))
    client.tick()
    taken = pack(wire.UNSUBSCRIBE, names, own) + pack(wire.UNPUBLISH, [5, *names], own)
    assert client.said[link] == taken
    assert (client.publish((5, *names), data), client.node.sent) == (-5, 2)


@given(st.integers(0, 0xFFFFFFFF), st.integers(1, 30))
def test_what_it_hears_gets_the_verdict_of_the_node_in_python(c: Any, seed: int, piece: int) -> None:
    chance, client = random.Random(seed), Client(c, BROKER)
    python: Any = Tmq([], "127.0.0.1", free_port(), subscribers=4)
    with closing(python):
        for names in ((1,), (1, 2)):
            client.declare(*names)
            python.register(PUBLISH, pack(1, names)[4:])
        client.subscribe(2)
        python.register(SUBSCRIBE, pack(1, (2,))[4:])
        link, cutter = client.call("accepted", 0), wire.Cutter()
        stream = b"".join(garbage(chance) for _ in range(8))
        for at in range(0, len(stream), piece):
            client.feed(link, stream[at : at + piece])
        rejected = 0
        for packet in cutter.cut(stream):
            if packet[0] & wire.HELLO_MASK == wire.HELLO:
                rejected += wire.unpack_hello(wire.data_of(packet)) is None
            elif packet[0] == wire.MESSAGE and packet[4:8] != b"\0\0\0\2":
                pass  # nobody wants it
            else:
                python._take(packet)  # noqa: SLF001 (without sockets)
        assert client.node.node.rejected == rejected + python.rejected
        assert {address for _, address in python.subscribers} == client.subscribers()
        assert client.node.full == python.full
        assert [data for _, data in client.heard] == [frame[4 + 4 * frame[1] :] for frame in python.inbox]
        assert bool(client.closed) == bool(cutter.fault)


def test_a_publisher_is_greeted_after_its_first_packet_and_answered(c: Any) -> None:
    client = Client(c)
    client.subscribe(1)
    link = client.call("accepted", 0)
    client.feed(link, pack(wire.MESSAGE, (1,), b"a")[:-1])
    assert link not in client.said
    client.feed(link, b"a" + pack(wire.MESSAGE, (1, 2), b"b"))
    assert client.said[link] == own_hello()
    client.feed(link, pack_hello(Hello(7, 3000, ANSWER)))
    assert client.said[link] == own_hello() + own_hello(ANSWERED)
    assert client.heard == [((1,), b"a"), ((1, 2), b"b")]


def test_it_shows_signs_of_life_and_gives_a_silent_broker_up(c: Any) -> None:
    client = Client(c, BROKER, OTHER)
    assert client.tick() == -6
    link = greeted(client)
    assert client.tick(900) == 0
    assert client.said[link] == b""
    client.tick(100)
    assert client.said[link] == own_hello()
    for _ in range(3):
        client.tick(1000)
    assert (client.closed, client.tick()) == ([link], -6)
    assert pack_address(OTHER) in client.dialled.values()


def test_it_goes_from_broker_to_broker_and_pauses_after_the_last(c: Any) -> None:
    client = Client(c, BROKER, OTHER)
    client.refuses = True
    client.subscribe(1)
    dials = []
    for _ in range(60):
        client.dialled.clear()
        client.tick(250)
        dials.append(len(client.dialled))
    assert sum(dials) in range(8, 14)  # two brokers; pauses of 1, 3, 7 and 10 s
    client.refuses = False
    client.tick(10000)
    assert pack_address(BROKER) in client.dialled.values()


def test_a_broker_that_refuses_it_is_left_and_a_refused_pattern_is_counted(c: Any) -> None:
    client = Client(c, BROKER, OTHER)
    link = greeted(client)
    client.feed(link, pack_refusal(Refusal(wire.SUBSCRIBE, (1,), "too many")))
    assert (client.node.refused, client.closed) == (1, [])
    client.feed(link, pack_refusal(Refusal(0, (), "too many")))
    assert (client.node.refused, client.closed) == (2, [link])


def test_a_greeting_and_a_refusal_may_be_longer_than_the_buffer(c: Any) -> None:
    client = Client(c, BROKER, OTHER, packet=28)
    client.tick()
    link = next(iter(client.dialled))
    client.connect(link)
    client.feed(link, pack(wire.HELLO, (), wire.data_of(HELLO) + bytes(50)) + HELLO)
    assert client.tick() == 0
    assert client.declare(1, 2, 3, 4) == 0
    assert client.declare(1, 2, 3, 4, 5) == -1  # a list of its subscribers has no room
    client.feed(link, pack_refusal(Refusal(0, (), "too many " * 9)))
    assert (client.node.refused, client.closed, client.node.oversize, client.node.lost) == (1, [link], 0, 0)


def test_it_returns_to_a_better_broker(c: Any) -> None:
    client = Client(c, BROKER, OTHER)
    client.subscribe(1)
    client.tick()
    client.call("closed", next(iter(client.dialled)), 0)
    client.dialled.clear()
    old = greeted(client)
    client.dialled.clear()
    client.feed(old, HELLO)
    client.tick(2500)
    client.feed(old, HELLO)
    client.tick(2500)
    (trial,) = client.dialled
    assert client.connect(trial) == own_hello()
    client.said[trial] = b""
    client.feed(trial, HELLO)
    assert client.closed == [old]
    assert client.said[trial] == pack(wire.SUBSCRIBE, (1,), pack_address(OWN))


def test_a_subscriber_that_takes_no_connection_is_reported_and_paused(c: Any) -> None:
    client = Client(c, BROKER)
    link = greeted(client)
    peer = named(client, link, 4)
    client.publish((4,), b"two")
    client.tick()
    client.said[link] = b""
    client.call("closed", peer, client.now_ms)
    client.tick()
    assert client.said[link] == pack(wire.DEAD, (), pack_address(PEER))
    assert (client.node.unsent, client.publish((4,), b"x")) == (2, -3)
    client.feed(link, pack(wire.ADD, (4,), pack_address(PEER)))  # a broker names it again
    assert client.publish((4,), b"y") == 0
    client.feed(link, pack(wire.FORGET, (4,), pack_address(PEER)))
    assert client.publish((4,), b"z") == -5


def test_messages_wait_for_room_in_their_order_and_the_queue_is_bounded(c: Any) -> None:
    client = Client(c, BROKER)
    link = greeted(client)
    peer = named(client, link, 4)
    client.connect(peer)
    client.feed(peer, HELLO)
    client.said[peer], client.room = b"", 40
    long, short = bytes(100), b"short"
    assert [client.publish((4,), data) for data in (long, short)] == [0, 0]
    assert client.said[peer] == b""
    client.room = 0xFFFF
    client.tick()
    assert client.said[peer] == pack(wire.MESSAGE, (4,), long) + pack(wire.MESSAGE, (4,), short)
    client.room = 0
    results = [client.publish((4,), bytes(600)) for _ in range(5)]
    assert results == [0, 0, 0, -2, -2]
    assert (client.node.sent, client.node.unsent) == (3, 2)
    client.refuses, client.room = True, 0xFFFF
    client.tick()
    assert (client.node.sent, client.node.unsent, client.node.queue.used) == (3, 5, 0)


def test_publishers_share_the_links_and_none_holds_one_for_ever(c: Any) -> None:
    client = Client(c, BROKER)
    greeted(client)
    assert [client.call("accepted", 0) >= 0 for _ in range(3)] == [True, True, False]
    assert client.call("accepted", 251) >= 0
    client.now_ms = 6000
    client.tick()
    assert len(client.closed) == 4  # the broker was silent, and the publishers sent nothing


def opened(port: int = 0) -> Broker:
    broker = Broker(f"tcp://127.0.0.1:{port or free_port()}")
    broker.open(asyncio.get_running_loop())
    return broker


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    made = opened()
    yield made
    made.close()
    assert made.stats.balance() == 0


async def test_with_our_broker_and_our_client_both_ways(c: Any, broker: Broker) -> None:
    urls = broker.urls
    async with SocketClient(c, broker.addresses[0]) as board, OurClient(urls, listen="127.0.0.1:0") as client:
        board.subscribe(1)
        board.declare(7, 8)
        await client.subscribe((7,))
        await until(lambda: broker.registry.subscribers(Pattern(1, 2)) and board.node.subscriber_count)
        expected = [b"%d" % number for number in range(200)]
        for data in expected:
            await client.publish((1, 2), data)
            await until(lambda data=data: board.publish((7, 8), data) == 0)  # type: ignore[misc]
        assert [await client.receive() for _ in expected] == [((7, 8), data) for data in expected]
        await until(lambda: len(board.heard) == len(expected))
        assert board.heard == [((1, 2), data) for data in expected]
        assert (board.node.sent, board.node.lost) == (200, 0)
        board.call("unsubscribe", *board.tokens(1))
        await until(lambda: not broker.registry.subscribers(Pattern(1, 2)))


async def test_with_the_reference_s_clients_at_our_broker_and_at_the_reference_s(
    c: Any, broker: Broker
) -> None:
    with closing(ReferenceBroker()) as reference:
        for address, sockets in ((broker.addresses[0], ()), (reference.address, (reference,))):
            with closing(ReferenceClient(address)) as theirs:
                async with SocketClient(c, address) as board:
                    theirs.subscribe(4)
                    theirs.publish(9)
                    board.subscribe(9)
                    board.declare(4)
                    ready = partial(_named_both_ways, board, theirs)
                    await processed(ready, *sockets, theirs)
                    for number in range(5):
                        theirs.send((9,), b"%d" % number)
                        assert board.publish((4,), b"%d" % number) == 0
                    await processed(partial(_heard_by_both, board, theirs, 5), theirs)
                    assert theirs.received[4,] == [data for _, data in board.heard]


def _named_both_ways(board: SocketClient, theirs: ReferenceClient) -> bool:
    return bool(board.node.subscriber_count and theirs.subscribers[9,])


def _heard_by_both(board: SocketClient, theirs: ReferenceClient, count: int) -> bool:
    return len(theirs.received[4,]) == len(board.heard) == count


async def test_a_broker_that_dies_and_comes_back_is_told_everything_again(c: Any) -> None:
    broker = opened()
    port = broker.addresses[0][1]
    async with SocketClient(c, broker.addresses[0]) as board:
        board.subscribe(1)
        board.declare(2)
        await until(lambda: len(broker.registry) == 2)
        broker.close()
        await until(lambda: not board.node.up)
        broker = opened(port)
        board.later_ms = 12000  # as if the pause were over
        await until(lambda: len(broker.registry) == 2 and board.node.up)
    broker.close()
