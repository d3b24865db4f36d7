"""The node over TCP against the gateway's link, on real sockets of the loopback interface."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from bridges.media.tcp.link import TcpFramesLink
from bus.embedded import buscoupler_node as node_module
from bus.embedded.buscoupler_node import Tcp
from bus.hub import Hub
from bus.wire.envelope import Envelope, wrap
from tests.bridges.support import SIZES, frame, recorder, say
from tests.bus.embedded.support import small_node
from tests.helpers.links import tcp_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

SMALL: Any = small_node(["tcp"])


@contextmanager
def gateway(hub: Hub, port: int = 0) -> Iterator[TcpFramesLink]:
    link = tcp_link("127.0.0.1", port, mode="listen")
    link.open(hub, asyncio.get_running_loop())
    try:
        yield link
    finally:
        link.close()


def port_of(link: TcpFramesLink) -> int:
    return int(link.url.rpartition(":")[2])


class Hearing:
    """A node's link that is polled; `found` holds the received messages."""

    def __init__(self, link: Tcp) -> None:
        self.link = link
        self.found: list[bytes] = []

    def poll(self) -> bool:
        message = self.link.poll()
        self.found += [] if message is None else [message]
        return self.link.sock is not None

    def send(self, message: bytes) -> bool:
        return self.poll() and self.link.send(message)


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """A listening socket for behaviour that a gateway never shows."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize("module", [node_module, SMALL])
async def test_every_size_both_ways(module: Any) -> None:
    hub = Hub()
    heard = recorder(hub)
    messages = [frame(size) for size in SIZES]
    messages += [wrap(message, Envelope(1, 2)) for message in messages]
    with gateway(hub) as link:
        node = Hearing(module.Tcp("127.0.0.1", port_of(link), limit=3084))
        await until(lambda: node.poll() and len(link.pipes) == 1)
        say(hub, None, *messages)
        await until(lambda: node.poll() and len(node.found) == len(messages))
        assert node.found == heard.messages == messages
        heard.messages.clear()
        for message in messages:
            await until(partial(node.send, message))
        await until(lambda: node.poll() and len(heard.messages) == len(messages))
        assert heard.messages == messages
        assert node.link.rejected == node.link.oversize == 0
        node.link.close()


async def test_longer_ones_are_skipped_and_counted() -> None:
    hub = Hub()
    with gateway(hub) as link:
        node = Hearing(Tcp("127.0.0.1", port_of(link), limit=64))
        await until(lambda: node.poll() and len(link.pipes) == 1)
        say(hub, None, *map(frame, (64, 65, 3072, 4, 300)), frame(63))
        await until(lambda: node.poll() and len(node.found) == 3)
        assert node.found == [frame(64), frame(4), frame(63)]
        assert node.link.oversize == 3
        node.link.close()


async def test_a_gateway_that_goes_and_comes_back_is_dialled_again() -> None:
    hub = Hub()
    heard, port = recorder(hub), free_port()
    with gateway(hub, port) as link:
        node = Hearing(Tcp("127.0.0.1", port))
        await until(lambda: node.poll() and len(link.pipes) == 1)
    await until(lambda: not node.poll())
    assert node.link.fault
    assert not node.link.send(frame(20))
    assert node.link.unsent == 1
    with gateway(hub, port) as link:
        await until(lambda: node.poll() and len(link.pipes) == 1)
        assert node.link.send(frame(30))
        await until(lambda: len(heard.messages) == 1)
        node.link.close()
    assert heard.messages == [frame(30)]


async def test_each_address_of_a_name_is_tried_of_any_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at the first."""
    with gateway(Hub()) as link:
        port = port_of(link)
        found = [
            (socket.AF_INET6, 1, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, 1, 6, "", ("127.0.0.1", port)),
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
        node = Tcp("gateway.example", port)
        assert node.poll() is None
        assert node.fault
        node.since_ms -= node.pause_ms  # as if the pause were over
        await until(lambda: node.poll() is None and len(link.pipes) == 1)
        node.close()


async def test_pauses_grow_while_nobody_answers(peer: socket.socket) -> None:
    port = peer.getsockname()[1]
    peer.close()
    link = Tcp("127.0.0.1", port)
    pauses = []
    for _ in range(10):
        assert link.poll() is None
        pauses.append(link.pause_ms)
        link.since_ms -= link.pause_ms  # as if the pause were over
    assert pauses == [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]


async def test_what_is_no_frame_ends_the_connection_and_a_half_one_is_forgotten(peer: socket.socket) -> None:
    node = Hearing(Tcp("127.0.0.1", peer.getsockname()[1]))
    node.poll()
    first = peer.accept()[0]
    first.sendall(frame(20) + b"\1\0\xff\xff" + frame(20)[:10])
    await until(lambda: not node.poll())
    assert node.found == [frame(20)]
    assert node.link.rejected == 1
    first.close()
    node.link.since_ms -= node.link.pause_ms
    assert node.poll()
    second = peer.accept()[0]
    second.sendall(frame(21))
    await until(lambda: node.poll() and len(node.found) == 2)
    assert node.found == [frame(20), frame(21)]
    second.close()
    node.link.close()


async def test_a_peer_that_takes_nothing_holds_nobody_up_and_each_loss_is_counted(
    peer: socket.socket,
) -> None:
    link = Tcp("127.0.0.1", peer.getsockname()[1], queue=9000)
    link.poll()
    clogged = peer.accept()[0]
    message = frame(3072)
    sent = taken = 0
    while link.unsent < 10:  # however much the kernel holds
        sent += 1
        taken += link.send(message)
    assert taken == sent - 10
    assert link.queued <= 9000
    clogged.setblocking(False)
    size = 0

    def all_read() -> bool:
        nonlocal size
        link.poll()
        with suppress(BlockingIOError):
            while data := clogged.recv(1 << 20):
                size += len(data)
        return size == taken * 3072

    await until(all_read)
    while not link.queue:
        link.send(message)
    before, waiting = link.unsent, len(link.queue)
    link.close()
    assert link.unsent == before + waiting
    clogged.close()


def go(peer: socket.socket) -> None:
    """Close a connection as a program that ends at once does: by a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


@pytest.mark.parametrize("module", [node_module, SMALL])
async def test_what_a_peer_sent_before_it_went_is_heard_though_sending_to_it_fails_first(
    module: Any, peer: socket.socket
) -> None:
    node = Hearing(module.Tcp("127.0.0.1", peer.getsockname()[1]))
    node.poll()
    gone = peer.accept()[0]
    gone.sendall(frame(100) * 40)
    go(gone)
    await until(lambda: not node.link.send(frame(20)))
    await until(lambda: not node.poll())
    assert node.found == [frame(100)] * 40
    assert node.link.unsent > 1
    assert "reset" in node.link.fault


async def test_what_came_behind_one_that_is_too_long_is_heard_though_the_peer_has_gone(
    peer: socket.socket,
) -> None:
    node = Hearing(Tcp("127.0.0.1", peer.getsockname()[1], limit=64))
    node.poll()
    gone = peer.accept()[0]
    gone.sendall(frame(20) + frame(65) + frame(21))
    gone.close()
    await until(lambda: not node.poll())
    assert node.found == [frame(20), frame(21)]
