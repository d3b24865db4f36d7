"""A listener of streams: who is silent costs a seat, and no task; who speaks is served."""

import asyncio
import gc
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from ssl import SSLContext
from typing import Any

import pytest

from bus.serving.lasting import open_stream
from bus.serving.streams import Serve, StreamListener
from bus.transports.seats import ROOM, Seat, Seats
from bus.transports.secure import context
from bus.transports.sockets import Acceptor
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until

MOST = 4


class House:
    """A listener with four seats whose service echoes one read."""

    def __init__(
        self, silent_s: float = 60.0, serve: Serve | None = None, tls: SSLContext | None = None
    ) -> None:
        self.rejected, self.seats, self.troubles = Counter[str](), Seats(), list[OSError]()
        self.listener = StreamListener(
            serve or self._serve,
            lambda: MOST,
            lambda why: self.rejected.update([why]),
            tls,
            seats=self.seats,
            silent_s=silent_s,
        )
        acceptor = Acceptor(socket.AF_INET, ("127.0.0.1", 0))
        self.place = self.listener.open(asyncio.get_running_loop(), acceptor, self.troubles.append)

    async def _serve(self, reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        seat.meet()
        writer.write(await reader.read(100))
        writer.close()

    async def connected(self, count: int) -> list[socket.socket]:
        made = [socket.create_connection(self.place) for _ in range(count)]
        await until(lambda: len(self.seats) + self.rejected.total() == count)
        return made


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    made.listener.close()
    await until(lambda: not len(made.seats))


async def test_who_is_silent_costs_no_task_and_makes_room(house: House) -> None:
    before = len(asyncio.all_tasks())
    held = await house.connected(3 * MOST)
    assert len(asyncio.all_tasks()) == before
    assert len(house.seats) == MOST
    assert house.rejected == {ROOM: 2 * MOST}
    await until(lambda: is_closed(held[0]))
    for sock in held:
        sock.close()
    await until(lambda: not len(house.seats))
    assert len(asyncio.all_tasks()) == before


async def test_a_peer_that_resets_its_connection_is_no_error_of_ours() -> None:
    said, begun = list[Any](), asyncio.Event()

    async def serve(reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        begun.set()
        await reader.readexactly(100)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    house = House(serve=serve)
    (sock,) = await house.connected(1)
    sock.sendall(b"x")
    await begun.wait()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    await until(lambda: not len(house.seats))
    house.listener.close()
    gc.collect()  # a task tells of its error when nobody can ask any more
    assert not said


@pytest.mark.parametrize("leaves", ["client", "server"])
async def test_who_says_goodbye_over_tls_first_is_no_error_of_ours(leaves: str, tmp_path: Path) -> None:
    """The other end closes a transport that is marked as closed already, asks for its socket, and aborts."""
    said, served = list[Any](), list[bool]()

    async def serve(reader: StreamReader, writer: StreamWriter, seat: Seat) -> None:
        await converse(reader, writer, leaves == "server")
        served.append(writer.get_extra_info("socket") is not None)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    tls, url = own_tls(tmp_path), "tls+tcp://127.0.0.1"
    house = House(serve=serve, tls=context(url, tls, listens=True))
    dials = context(url, tls, listens=False)
    reader, writer = await open_stream(*house.place[:2], ssl=dials, server_hostname="127.0.0.1")
    await converse(reader, writer, leaves == "client")
    writer.transport.abort()
    await until(lambda: served and not len(house.seats))
    house.listener.close()
    gc.collect()  # a task whose exception nobody has taken says so when it goes
    assert not said


async def converse(reader: StreamReader, writer: StreamWriter, leaves_first: bool) -> None:
    writer.write(b"x")
    await reader.readexactly(1)
    if not leaves_first:
        assert await reader.read() == b""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def test_who_speaks_is_served(house: House) -> None:
    (sock,) = await house.connected(1)
    sock.sendall(b"hello")
    await until(lambda: not len(house.seats))
    assert sock.recv(100) == b"hello"
    sock.close()


def is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return not sock.recv(1)
    except BlockingIOError:
        return False


async def test_who_stays_silent_is_closed() -> None:
    house = House(silent_s=0.01)
    held = [socket.create_connection(house.place) for _ in range(2)]
    await until(lambda: all(map(is_closed, held)))
    assert not len(house.listener)
    for sock in held:
        sock.close()
    house.listener.close()


async def test_who_is_closed_before_its_first_turn_keeps_no_descriptor() -> None:
    house = House(silent_s=0.0)  # the task has begun when the next connection comes
    held = await house.connected(3 * MOST)
    house.listener.close()
    await until(lambda: not len(house.seats))
    await until(lambda: all(map(is_closed, held)))
    for sock in held:
        sock.close()
