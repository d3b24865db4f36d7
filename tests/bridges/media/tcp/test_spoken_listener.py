"""A port at which peers connect that speak a protocol: what goes to each, and what a reload changes."""

import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bridges.media.tcp.medium import Tcp
from bridges.media.tcp.spoken_listener import TcpSpokenListener
from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.cannelloni.protocol import Cannelloni
from bus.hub import Hub
from bus.transports.listening import ListenLink
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import say
from tests.helpers.peers import until

HERE = Tcp(host="127.0.0.1", port=0, mode="listen")
BYTES = Bytes(send=("in",), on_gap="go on")


@pytest.fixture
def opened() -> Iterator[Any]:
    """Return what opens a listener for a protocol on a hub, and closes it in the end."""
    links = list[TcpSpokenListener]()

    def open_(protocol: Any, hub: Hub) -> TcpSpokenListener:
        links.append(link := TcpSpokenListener(HERE, protocol))
        link.open(hub, get_running_loop())
        return link

    yield open_
    for link in links:
        link.close()


async def connected(link: TcpSpokenListener, hub: Hub) -> socket.socket:
    count = len(hub.pipes)
    sock = socket.create_connection(("127.0.0.1", int(link.url.rpartition(":")[2])))
    sock.setblocking(False)
    await until(lambda: len(hub.pipes) == count + 1)
    return sock


async def heard(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = await get_running_loop().sock_recv(sock, size)
        assert part, "the conversation is over"
        found += part
    return found


async def test_what_a_peer_gets_is_counted_and_so_is_what_its_protocol_does_not_say(opened: Any) -> None:
    hub = Hub()
    link = opened(BYTES, hub)
    with await connected(link, hub) as sock:
        say(hub, None, message("in/7/5", b"a"), message("in/7/6", b"b"), message("in/7/5", b"c"))
        say(hub, None, message("out", b"d"), message("in/7/7", b"e"))
        assert await heard(sock, 3) == b"abe"
        stats = hub.accounts()[link.name].stats
        assert (stats.sent, sum(stats.dropped.values()), stats.balance()) == (3, 2, 0)


async def test_a_peer_is_answered_and_the_conversation_goes_on(opened: Any) -> None:
    hub = Hub()
    link = opened(Cannelloni(root=("car",), send=("all",)), hub)
    with await connected(link, hub) as sock:
        await get_running_loop().sock_sendall(sock, b"CANNELLONIv1")
        assert await heard(sock, 12) == b"CANNELLONIv1"
        say(hub, None, message("car/0x123", b"ab"))
        assert (await heard(sock, 7))[-2:] == b"ab"


async def test_another_listener_gives_its_bounds_and_names_and_another_link_none(opened: Any) -> None:
    link = opened(BYTES, Hub())
    size_bytes = 4 * HERE.queue_bytes
    assert link.revise(TcpSpokenListener(replace(HERE, queue_bytes=size_bytes), BYTES, ("temp",)))
    assert not link.revise(ListenLink("tcp://127.0.0.1:0"))
    assert (link.names, link.queue_bytes, link.link.queue_bytes) == (("temp",), size_bytes, size_bytes)
