"""A connection that is closed from here while something lies unread in it: what was sent still comes."""

import asyncio
import gc
import os
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from appliance.process.serve import serve
from bridges.media.uart.remote import SocketPort
from bus.hub import Hub
from bus.serving.connection import Connection
from bus.tmq.wire import Cutter
from bus.transports import parting
from bus.transports.dialling import DialLink
from bus.transports.on_the_way import of_process_bytes, on_the_way_bytes
from bus.transports.parting import part, parted
from bus.transports.sockets import CLOSED_HERE
from bus.transports.stream import StreamPipe
from bus.wire.batch import from_payloads
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until, wait
from tests.helpers.talker import greeted, over_tls, read

LEAST_BYTES = 50_000
SMALL = 1 << 14


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Yield a listener, whose connections take little before somebody reads."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        made.settimeout(30)
        yield made


def filled(link: DialLink) -> StreamPipe:
    """Send to the one peer of a link until much is on the way and nothing is queued."""
    (pipe,) = link.pipes
    while of_process_bytes() < LEAST_BYTES:
        pipe.send(from_payloads([bytes(1000)]))
    assert not pipe.queued_bytes
    return pipe


def unread(peer: socket.socket, link: DialLink) -> None:
    """Let something lie unread in a connection."""
    (pipe,) = link.pipes
    pipe.pause()
    peer.sendall(bytes(SMALL))


@pytest.mark.parametrize("scheme", ["tcp", "tls+tcp"])
async def test_what_a_link_has_sent_comes_after_its_end(scheme: str, tmp_path: Path) -> None:
    tls = own_tls(tmp_path)
    loop = asyncio.get_running_loop()
    with listening() as listener:
        port = listener.getsockname()[1]
        link = DialLink(f"{scheme}://127.0.0.1:{port}", tls=tls if scheme != "tcp" else None)
        link.open(Hub(), loop)
        try:
            served = over_tls(listener, tls) if scheme != "tcp" else listener
            with served, await asyncio.to_thread(greeted, served) as peer:
                await until(lambda: link.state == "up")
                unread(peer, link)
                pipe = filled(link)
                link.close()
                assert await asyncio.to_thread(read, peer) == pipe.stats.sent_bytes > LEAST_BYTES
        finally:
            link.close()
        await parted(loop)


def serial_server(sock: socket.socket) -> Callable[[], None]:
    return SocketPort(sock).close


def service(sock: socket.socket) -> Callable[[], None]:
    made = Connection(
        asyncio.get_running_loop(), sock, "127.0.0.1:1", Cutter(), lambda *_: None, lambda _: None
    )
    made.pause()
    return lambda: made.close(CLOSED_HERE)


@pytest.mark.parametrize("owner", [serial_server, service])
async def test_what_others_with_a_connection_have_sent_comes_too(
    owner: Callable[[socket.socket], Callable[[], None]],
) -> None:
    with listening() as listener:
        sock = socket.create_connection(listener.getsockname())
        sock.setblocking(False)
        with listener.accept()[0] as peer:
            peer.settimeout(30)
            close = owner(sock)
            peer.sendall(bytes(SMALL))
            sent_bytes = sock.send(bytes(LEAST_BYTES))
            assert on_the_way_bytes(sock.fileno())
            close()
            assert await asyncio.to_thread(read, peer) == sent_bytes
    await parted(asyncio.get_running_loop())


async def test_what_must_not_come_late_does_not_come_after_the_end() -> None:
    with listening() as listener:
        sock = socket.create_connection(listener.getsockname())
        with listener.accept()[0] as peer:
            peer.settimeout(30)
            port = SocketPort(sock, late_s=2)
            sent_bytes = port.write(bytes(1 << 20))
            assert sent_bytes > LEAST_BYTES
            assert on_the_way_bytes(sock.fileno())
            port.close()
            assert await asyncio.to_thread(read, peer) < sent_bytes


class Sending:
    """A service with a link, which has sent to a peer when it has opened."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener, self.hub, self.heard = listener, Hub(), list[int]()
        self.link = DialLink(f"tcp://127.0.0.1:{listener.getsockname()[1]}")

    def open(self, loop: AbstractEventLoop) -> None:
        self.link.open(self.hub, loop)

    def close(self) -> None:
        self.link.close()

    async def opened(self) -> None:
        self.peer = await asyncio.to_thread(greeted, self._listener)
        await until(lambda: self.link.state == "up")
        unread(self.peer, self.link)
        self.pipe = filled(self.link)

    def hubs(self) -> Iterable[Hub]:
        return (self.hub,)

    def begin(self) -> Callable[[], int]:
        """Let the peer read, once the service has begun to close."""
        self.reading = Thread(target=lambda: self.heard.append(read(self.peer)))
        asyncio.get_running_loop().call_soon(self.reading.start)
        return int


def test_a_service_ends_when_the_other_machine_has_what_it_sent() -> None:
    with listening() as listener:
        service = Sending(listener)
        assert serve(service, lambda: None, service.begin, limit_s=0) == 0
        service.reading.join()
        service.peer.close()
        assert service.heard == [service.pipe.stats.sent_bytes]
        assert service.heard > [LEAST_BYTES]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_loop_that_ends_leaves_no_descriptor() -> None:
    async def begin(sock: socket.socket) -> None:
        part(asyncio.get_running_loop(), sock)

    with listening() as listener:
        sock = socket.create_connection(listener.getsockname())
        with listener.accept()[0]:
            sock.setblocking(False)
            sock.send(bytes(10 * LEAST_BYTES))
            descriptor = sock.fileno()
            asyncio.run(begin(sock))
            assert is_open(descriptor)
            with socket.socket() as other:
                asyncio.run(begin(other))
            gc.collect()
            assert not is_open(descriptor)


def test_a_connection_that_outlives_its_loop_is_closed_at_once() -> None:
    async def made() -> AbstractEventLoop:
        return asyncio.get_running_loop()

    with listening() as listener, socket.create_connection(listener.getsockname()) as sock:
        with listener.accept()[0]:
            sock.setblocking(False)
            sock.send(bytes(10 * LEAST_BYTES))
            part(asyncio.run(made()), sock)
            assert sock.fileno() < 0


async def test_a_peer_that_never_reads_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parting, "PARTING_S", 0.1)
    loop = asyncio.get_running_loop()
    with listening() as listener, socket.create_connection(listener.getsockname()) as sock:
        peer, _ = listener.accept()
        with peer:
            sock.setblocking(False)
            sock.send(bytes(10 * LEAST_BYTES))
            descriptor = sock.fileno()
            part(loop, sock)
            assert is_open(descriptor)
            await parted(loop)
            assert not is_open(descriptor)


async def test_few_connections_wait_for_their_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parting, "CONNECTIONS", 1)
    loop = asyncio.get_running_loop()
    with listening() as listener:
        made = [socket.create_connection(listener.getsockname()) for _ in range(2)]
        peers = [listener.accept()[0] for _ in made]
        descriptors = [sock.fileno() for sock in made]
        for sock in made:
            sock.setblocking(False)
            sock.send(bytes(10 * LEAST_BYTES))
            part(loop, sock)
        assert [is_open(descriptor) for descriptor in descriptors] == [True, False]
        for peer in peers:
            peer.close()
        await parted(loop)


@pytest.mark.parametrize("fault", ["connections full", CLOSED_HERE])
async def test_what_a_peer_is_told_before_its_end_comes_with_no_reset_though_much_of_it_lies_unread(
    fault: str,
) -> None:
    with listening() as listener, socket.create_connection(listener.getsockname()) as peer:
        sock = listener.accept()[0]
        sock.setblocking(False)
        made = Connection(
            asyncio.get_running_loop(), sock, "127.0.0.1:1", Cutter(), lambda *_: None, lambda _: None
        )
        made.pause()
        peer.settimeout(30)
        peer.sendall(bytes(SMALL))
        made.say(b"full")
        wait(lambda: not on_the_way_bytes(sock.fileno()))
        made.close(fault)
        assert await asyncio.to_thread(read, peer) == len(b"full")
        peer.sendall(b"a reset would make this fail")
    await parted(asyncio.get_running_loop())
