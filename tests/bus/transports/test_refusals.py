"""A refused peer reads why, also if it says much: a reset would overtake the answer, or take it back."""

import asyncio
import socket
from contextlib import suppress

import pytest

from bus.transports.refusals import MOST_BYTES, WAITING, Refusals, unavailable
from tests.helpers.peers import until

WHY = "connections full"
GET = b"GET / HTTP/1.1\r\n"


def refused(refusals: Refusals, server: socket.socket, *said: bytes) -> socket.socket:
    """Connect, say something, and be turned away."""
    peer = socket.create_connection(server.getsockname())
    for data in said:
        peer.sendall(data)
    sock = server.accept()[0]
    sock.setblocking(False)
    refusals.turn_away(asyncio.get_running_loop(), sock, WHY)
    peer.setblocking(False)
    return peer


def heard(peer: socket.socket) -> bytes | None:
    """Return the end of what came, until the connection was closed; None while it is open. A reset raises."""
    data = b""
    with suppress(BlockingIOError):
        while more := peer.recv(1 << 16):
            data += more
        return data
    return None


@pytest.mark.parametrize("count", [1, WAITING + 3])
async def test_a_peer_that_has_said_much_reads_why_it_is_refused_and_no_reset(count: int) -> None:
    refusals = Refusals(unavailable)
    with socket.create_server(("127.0.0.1", 0)) as server:
        peers = [refused(refusals, server, GET, b"Cookie: " + b"x" * 30_000) for _ in range(count)]
        for peer in peers:
            with peer:
                answer = heard(peer)
                assert answer is not None
                assert WHY.encode() in answer
        await until(lambda: not len(refusals))


async def test_a_peer_that_says_more_after_its_answer_reads_it() -> None:
    refusals = Refusals(unavailable)
    with socket.create_server(("127.0.0.1", 0)) as server, refused(refusals, server, GET) as peer:
        for _ in range(10):
            peer.sendall(b"x" * 1000)  # would fail after a reset
            await asyncio.sleep(0)
        assert WHY.encode() in (heard(peer) or b"")
    await until(lambda: not len(refusals))


async def test_who_says_too_much_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.transports.refusals._PATIENCE_S", 1e9)
    refusals = Refusals(unavailable)
    with socket.create_server(("127.0.0.1", 0)) as server, refused(refusals, server, GET) as peer:
        sent = 0

        def is_closed() -> bool:
            nonlocal sent
            with suppress(BlockingIOError, ConnectionError):
                sent += peer.send(bytes(1 << 16))
            return not len(refusals)

        await until(is_closed)
        assert sent > MOST_BYTES / 2
    refusals.close(asyncio.get_running_loop())
