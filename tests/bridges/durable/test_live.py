"""Messages that an end gets by the connection alone, as no journal keeps them: each is accounted for."""

import asyncio
import socket

import pytest

from bridges.durable.door import Door
from bridges.durable.sifting import Sieve
from bridges.durable.wire import EndName, Hello, hello
from bus.balance import imbalances
from bus.transports.links import bus_link
from bus.wire.batch import from_payloads
from bus.wire.frame import pack
from tests.bridges.durable.gateways import Gateway, Make, disk
from tests.helpers.peers import until

HANDSHAKE = bytes.fromhex("0053500000700000")
READING = pack(1, (7, 8), bytes(1000))


async def far_end(port: int, *messages: bytes) -> socket.socket:
    """Connect to a trunk, say messages, and read nothing from then on."""
    loop, made = asyncio.get_running_loop(), socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await loop.sock_connect(made, ("127.0.0.1", port))
    await loop.sock_sendall(made, HANDSHAKE + from_payloads(messages).keep())
    return made


async def until_no_room(gateway: Gateway) -> None:
    """Say readings until the connection has no room."""
    while "queue full" not in gateway.end("gw-b").stats.dropped:
        gateway.say(*[READING] * 100)
        await asyncio.sleep(0)


@pytest.mark.parametrize("late", [False, True])
async def test_what_waits_for_an_end_that_goes_is_dropped_and_counted(make: Make, late: bool) -> None:
    """`late`: the end was taken for a plain peer before its hello came."""
    a = make("gw-a", disk(), "gw-b")
    await a.is_open()
    link = bus_link("tcp://127.0.0.1:0", "listen", trunk=True)
    link.open(Door(a.trunk, a.name, a.loop, a.house, ("gw-b",), Sieve([(9,)])), a.loop)
    a.links.append(link)
    said = hello(Hello(EndName("plant", "gw-b", "shop"), 0, False))
    port = int(link.url.rpartition(":")[2])
    with await far_end(port, *([READING] if late else []), said):
        await until(lambda: a.end("gw-b").line is not None, what="the end")
        await until_no_room(a)
        assert imbalances([a.bridge]) == []
    await until(lambda: a.end("gw-b").line is None, what="the loss")
    stats = a.end("gw-b").stats
    assert imbalances([a.bridge]) == []
    assert stats.queued == 0
    assert stats.dropped["closed"], "what waited is not said to be sent"
