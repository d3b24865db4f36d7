"""The client on asyncio: what it has sent leaves before it closes."""

import asyncio
import socket
from contextlib import closing, suppress

import pytest

from bus.tmq import Client
from bus.tmq.client import client
from bus.tmq.client.node import ClientNode
from bus.tmq.wire import ADD, MESSAGE, Cutter, Hello, address_frames, pack_hello
from tests.bus.tmq.broker.broker_house import House
from tests.helpers.peers import until
from tests.helpers.tmq import StalledSubscriber, StarvedClient


@pytest.mark.parametrize("size", [1, 2000])
async def test_what_was_sent_leaves_before_a_client_closes(
    house: House, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """All but the first message wait for the subscriber's greeting; large ones then fill its socket."""
    monkeypatch.setattr(client, "LINGER_S", 30.0)  # which a stall of the machine must not use up
    broker = house.broker()
    sub = await house.client(broker)
    await sub.subscribe("x")
    async with Client([broker.urls[0]]) as pub:
        for number in range(200):
            assert await pub.publish("x", b"%04d" % number + bytes(size))
    assert (pub.stats.sent, pub.stats.dropped, pub.stats.balance()) == (200, {}, 0)
    await until(lambda: sub.inbox.offered == 200, what="the messages")


async def test_a_subscriber_that_speaks_while_a_client_closes_gets_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes to a closed socket resets the connection, and the kernel forgets what is on the way."""
    monkeypatch.setattr(client, "LINGER_S", 30.0)
    loop, end, broker = asyncio.get_running_loop(), ClientNode.close, house.broker()
    with closing(StalledSubscriber(broker.addresses[0], loop)) as slow:

        def close(node: ClientNode) -> None:
            slow.accepted[-1].send(pack_hello(Hello(99, 0)))
            end(node)

        async with Client([broker.urls[0]], heartbeat_s=60.0) as pub:
            await pub.publish("x")
            await until(lambda: pub.subscribers("x"))
            for number in range(20):
                await pub.publish("x", b"%04d" % number + bytes(2000))
            await until(lambda: pub.stats.sent == 20)
            reading = asyncio.create_task(messages(slow.accepted[-1]))
            monkeypatch.setattr(ClientNode, "close", close)
        assert len(await reading) == 20


async def messages(sock: socket.socket) -> list[bytes]:
    """Read to the end."""
    found, cutter = list[bytes](), Cutter()
    sock.setblocking(False)
    with suppress(ConnectionResetError):
        while data := await asyncio.get_running_loop().sock_recv(sock, 4096):
            found += [frame for frame in cutter.cut(data) if frame[0] == MESSAGE]
    return found


async def test_a_subscriber_that_takes_nothing_holds_no_client_up_for_long(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LINGER_S", 0.05)
    broker = house.broker()
    with closing(StarvedClient()) as starved:
        async with Client([broker.urls[0]]) as pub:
            await pub.publish("x")
            link, tokens = pub.node.uplink.connection, client.pattern_of("x")
            assert link is not None
            pub.node.on_frames(link, address_frames(ADD, tokens, [starved.address]))
            pub.send(tokens, b"1")
    assert (pub.stats.sent, pub.stats.dropped, pub.stats.balance()) == (0, {"closed": 1}, 0)
