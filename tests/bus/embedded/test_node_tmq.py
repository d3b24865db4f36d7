"""The node as a client of TMQ brokers: ours and the reference's, with our clients and the reference's."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from bus.embedded import buscoupler_tmq
from bus.embedded.buscoupler_tmq import Tmq, TmqNode
from bus.tmq import Client
from bus.tmq.broker import Broker
from tests.bus.embedded.support import small_node
from tests.bus.embedded.tmq_board import Board, named
from tests.bus.tmq.broker.broker_house import FAST, HERE
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import (
    PUBLISH,
    SUBSCRIBE,
    ReferenceBroker,
    ReferenceClient,
    packed,
    packet,
    processed,
)

SMALL: Any = small_node(["tmq"])


def opened(port: int = 0) -> Broker:
    """Open a broker at a port: one that may come back there later needs one that nobody takes meanwhile."""
    broker = Broker(f"tcp://127.0.0.1:{port or free_port()}", **FAST)  # type: ignore[arg-type]
    broker.open(asyncio.get_running_loop())
    return broker


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    made = opened()
    yield made
    made.close()
    assert made.stats.balance() == 0


@pytest.mark.parametrize("module", [buscoupler_tmq, SMALL])
async def test_with_our_clients_both_ways(broker: Broker, module: Any) -> None:
    async with Board(broker, module=module) as board, Client(broker.urls, listen=HERE) as client:
        board.subscribe(1)
        board.node.declare((7, 8))
        await client.subscribe((7,))
        await until(lambda: broker.registry.subscribers((1, 2)) and board.link.subscribers)
        expected = [b"%d" % number for number in range(100)]
        for number, data in enumerate(expected):
            await client.publish((1, 2), data)
            await until(partial(board.node.publish, (7, 8), data))
            await until(lambda number=number: len(board.heard) > number)  # type: ignore[misc]
        assert [await client.receive() for _ in expected] == [((7, 8), data) for data in expected]
        assert board.heard == [((1, 2), data) for data in expected]
        await until(lambda: board.link.sent == 100)
        assert client.stats.balance() == board.link.rejected == board.link.dropped == 0
        assert board.link.broker == broker.addresses[0]


@pytest.mark.parametrize("module", [buscoupler_tmq, SMALL])
@pytest.mark.parametrize("is_refused", [True, False])
async def test_each_address_of_a_brokers_name_is_tried(
    broker: Broker, module: Any, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first address nobody listens, or a program that never takes a packet."""
    where, look_up = broker.addresses[0], socket.getaddrinfo
    with closing(ReferenceBroker()) as silent:  # nobody processes what it is told
        first = ("127.0.0.2", where[1]) if is_refused else silent.address

        def names(host: str, *rest: Any) -> list[Any]:
            two = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in (first, where)]
            return two if host == "gw.example" else look_up(host, *rest)

        monkeypatch.setattr(socket, "getaddrinfo", names)
        async with Board(("gw.example", where[1]), module=module, timeout_s=0.2) as board:
            board.subscribe(1)
            await until(lambda: len(broker.registry) == 1)


async def test_two_nodes_and_names(broker: Broker) -> None:
    heard: list[bytes] = []
    async with Board(broker) as one, Board(broker) as other:
        other.node.subscribe("fridge", lambda _, data: heard.append(data))
        one.node.declare(("fridge", "temp"))
        await until(lambda: one.link.subscribers)
        assert one.node.publish(("fridge", "temp"), "4.5")
        await until(lambda: heard == [b"4.5"])


async def test_with_the_reference_s_clients_at_the_reference_s_broker() -> None:
    """What it says is byte for byte what the reference says; so is what our broker is told."""
    with closing(ReferenceBroker()) as reference, closing(ReferenceClient(reference.address)) as theirs:
        async with Board(reference.address, refresh_s=6000) as board:
            theirs.subscribe(4)
            theirs.publish(9, 9)
            board.subscribe(9, 9)
            board.node.declare((4,))
            await processed(lambda: board.link.subscribers and theirs.subscribers[9, 9], reference, theirs)
            own = packed(board.address)
            assert set(reference.heard[2:]) == {packet(PUBLISH, (4,), own), packet(SUBSCRIBE, (9, 9), own)}
            for number in range(5):
                assert board.node.publish((4,), b"%d" % number)
                theirs.send((9, 9), b"%d" % number)
            await processed(lambda: board.link.sent == 5, theirs)
            await until(lambda: len(board.heard) == 5)
        assert theirs.received[4,] == [b"0", b"1", b"2", b"3", b"4"]
        assert theirs.heard[-1] == packet(2, (4,), b"4")
        assert board.heard == [((9, 9), b"%d" % number) for number in range(5)]


async def test_with_the_reference_s_clients_at_our_broker(broker: Broker) -> None:
    with closing(ReferenceClient(broker.addresses[0])) as theirs:
        async with Board(broker) as board:
            theirs.subscribe(4, 1)
            theirs.publish(9)
            board.subscribe(9)
            board.node.declare((4, 1))
            await processed(lambda: board.link.subscribers and theirs.subscribers[9,], theirs)
            theirs.send((9,), b"to us")
            assert board.node.publish((4, 1), b"to them")
            await processed(lambda: theirs.received[4, 1] == [b"to them"] and board.heard, theirs)
            assert board.heard == [((9,), b"to us")]


async def test_an_address_of_0_0_0_0_is_the_one_that_our_broker_sees(broker: Broker) -> None:
    node = TmqNode(Tmq([named(broker)], port=free_port()))
    node.declare("up")
    try:
        await until(lambda: node.poll() or len(broker.registry))
        assert [address for _, _, address in broker.registry.own()] == [("127.0.0.1", node.link.port)]
    finally:
        node.link.close()


async def test_a_broker_that_dies_and_comes_back_is_told_everything_again() -> None:
    broker = opened()
    port = broker.addresses[0][1]
    async with Board(broker) as board:
        board.subscribe(1)
        board.node.declare((2,))
        await until(lambda: len(broker.registry) == 2)
        broker.close()
        await until(lambda: board.link.broker is None)
        assert "refused" in board.link.fault
        broker = opened(port)
        await until(lambda: len(broker.registry) == 2)
        await until(lambda: board.link.broker == broker.addresses[0])
    broker.close()


async def test_it_moves_to_the_next_broker_and_back_to_a_better_one() -> None:
    first, second = opened(), opened()
    port = first.addresses[0][1]
    async with Board(first, second) as board:
        board.subscribe(1)
        await until(lambda: board.link.broker == first.addresses[0])
        assert not len(second.registry)
        first.close()
        await until(lambda: len(second.registry) == 1 and board.link.broker == second.addresses[0])
        first = opened(port)
        await until(lambda: len(first.registry) == 1 and board.link.broker == first.addresses[0])
    first.close()
    second.close()


async def test_a_broker_that_never_answers_is_left(broker: Broker) -> None:
    with closing(ReferenceBroker()) as silent:  # nobody processes what it is told
        async with Board(silent.address, broker, timeout_s=0.2) as board:
            board.subscribe(1)
            await until(lambda: board.link.broker == broker.addresses[0])
            await until(lambda: len(broker.registry) == 1)


def test_pauses_grow_while_no_broker_answers() -> None:
    link = Board(("127.0.0.1", free_port())).link
    link.register(SUBSCRIBE, b"")
    pauses: list[int] = []
    for _ in range(60):
        before, link.second_ms = link.left_s, link.second_ms - 1000
        link.step()
        pauses += [link.left_s] if link.left_s >= before else []
    assert pauses[:5] == [2, 4, 8, 10, 10]  # after the first one, of 1 s
    link.close()


async def test_a_subscriber_that_is_gone_is_reported_and_the_broker_says_so(broker: Broker) -> None:
    with closing(ReferenceClient(broker.addresses[0])) as theirs:
        async with Board(broker) as board:
            theirs.subscribe(4)
            board.node.declare((4,))
            await until(lambda: board.link.subscribers)
            theirs.close()
            assert board.node.publish((4,), b"nobody hears this")
            await until(lambda: not board.link.subscribers)
            assert broker.counts["deaths"] == board.link.unsent == 1
            assert not board.node.publish((4,))
            assert board.link.unheard == 1
            assert board.link.down == {}


async def test_a_subscriber_that_no_broker_names_any_more_is_forgotten() -> None:
    with closing(ReferenceBroker()) as reference:
        address, lost = reference.address, 0
        board = Board(address)
    link = board.link
    link.register(PUBLISH, b"\0\0\0\4")
    link.subscribers = [(b"\0\0\0\4", packed(("127.0.0.1", free_port())))]
    pauses = []
    while link.subscribers:
        board.node.publish((4,), b"x")
        await until(lambda lost=lost: link.step() or link.unsent > lost)  # type: ignore[misc]
        lost = link.unsent
        for down in link.down.values():
            pauses.append(down[0])
            down[1] = 0  # as if the pause were over
    assert pauses == [1, 2, 4, 8, 16, 32]
    assert link.down == {}
    link.close()
