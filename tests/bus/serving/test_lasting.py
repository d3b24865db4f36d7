"""A stream of asyncio whose peer has gone: what it sent before is read, though writing to it fails first."""

import asyncio
import os
import socket
import struct
from asyncio import StreamWriter, Transport
from contextlib import suppress

import pytest

from bus.serving.lasting import READ_BYTES, LastingProtocol, LastingReader, open_stream
from bus.serving.streams import StreamListener
from bus.transports.seats import Seat
from bus.transports.sockets import Acceptor
from tests.helpers.peers import until
from tests.helpers.talker import send_whole

SAID = os.urandom(40_000)
MUCH = os.urandom(3 * READ_BYTES)
"""More than a reader holds before it pauses."""
PAUSES = 2 * READ_BYTES
AT_ONCE = 1 << 18  # asyncio reads so much, and pauses behind that


def go(peer: socket.socket) -> None:
    """Close a connection as a program that ends at once does: by a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def opened() -> tuple[LastingReader, StreamWriter, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader, writer = await open_stream(*server.getsockname())
        return reader, writer, server.accept()[0]


async def say_much(reader: LastingReader, peer: socket.socket) -> None:
    """Say more than the reader takes, so that the kernel has the end of it."""
    await asyncio.to_thread(peer.sendall, MUCH)
    await until(lambda: held(reader) > PAUSES)
    send_whole(peer, SAID)


def held(reader: LastingReader) -> int:
    """Return the bytes that a reader holds."""
    return len(reader._buffer)  # type: ignore[attr-defined] # noqa: SLF001


async def fail(writer: StreamWriter) -> None:
    """Write until that fails."""
    with suppress(OSError):
        while not writer.is_closing():
            writer.write(b"y")
            await writer.drain()


async def test_what_lay_in_the_kernel_is_read_though_a_write_failed_first() -> None:
    before = descriptors()
    reader, writer, peer = await opened()
    send_whole(peer, SAID)
    go(peer)
    await fail(writer)
    assert await reader.read() == SAID
    assert isinstance(reader.exception(), ConnectionError)
    assert descriptors() == before


@pytest.mark.parametrize("portion", [1000, 1 << 20])
async def test_the_rest_of_much_is_read_at_the_pace_of_who_reads(portion: int) -> None:
    reader, writer, peer = await opened()
    await say_much(reader, peer)
    go(peer)
    await fail(writer)
    heard = b""
    while data := await reader.read(portion):
        heard += data
        assert held(reader) <= PAUSES + AT_ONCE
    assert heard == MUCH + SAID


async def test_what_is_not_read_any_more_is_let_go() -> None:
    before = descriptors()
    reader, writer, peer = await opened()
    await say_much(reader, peer)
    go(peer)
    await fail(writer)
    await asyncio.sleep(0)
    assert descriptors() == before + 1
    came = held(reader)
    reader.let_go()
    assert descriptors() == before
    assert await reader.read() == MUCH[:came]


class Gone(Transport):
    """A transport whose socket has gone, as over TLS when a handshake ends."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def is_closing(self) -> bool:
        return True


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_a_connection_whose_socket_has_gone_already_ends(error: Exception | None) -> None:
    loop = asyncio.get_running_loop()
    reader = LastingReader(READ_BYTES, loop)
    protocol = LastingProtocol(reader, loop)
    protocol.connection_made(Gone())
    protocol.connection_lost(error)
    assert await reader.read() == b""


async def test_a_listener_has_what_its_peers_sent_before_they_went() -> None:
    before, heard, gone = descriptors(), list[bytes](), asyncio.Event()

    async def serve(reader: LastingReader, writer: StreamWriter, _: Seat) -> None:
        await gone.wait()
        await fail(writer)
        heard.append(await reader.read())
        writer.close()

    listener = StreamListener(serve, lambda: 4, lambda _: None)
    acceptor = Acceptor(socket.AF_INET, ("127.0.0.1", 0))
    place = listener.open(asyncio.get_running_loop(), acceptor, lambda _: None)
    with socket.create_connection(place) as peer:
        await until(lambda: len(listener) == 1)
        send_whole(peer, SAID)
        go(peer)
    gone.set()
    await until(lambda: not len(listener))
    listener.close()
    assert heard == [SAID]
    assert descriptors() == before


async def test_a_peer_whose_words_are_not_all_read_has_its_answer_and_an_end() -> None:
    async def serve(reader: LastingReader, writer: StreamWriter, _: Seat) -> None:
        await reader.readexactly(1)
        writer.write(b"too long")
        await said.wait()
        writer.close()

    said = asyncio.Event()
    listener = StreamListener(serve, lambda: 4, lambda _: None, read_bytes=4096)
    acceptor = Acceptor(socket.AF_INET, ("127.0.0.1", 0))
    place = listener.open(asyncio.get_running_loop(), acceptor, lambda _: None)
    with socket.create_connection(place) as peer:
        peer.setblocking(False)
        size = peer.send(SAID)
        assert await asyncio.get_running_loop().sock_recv(peer, 100) == b"too long"
        size += peer.send(SAID)
        said.set()
        await until(lambda: not len(listener))
        assert size == 2 * len(SAID)
        assert peer.recv(100) == b""
    listener.close()
