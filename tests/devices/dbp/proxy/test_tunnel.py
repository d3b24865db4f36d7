"""A tunnel whose other side asks and never reads, or says nothing: what waits for it is bounded."""

import asyncio
import os
import socket
import struct
from contextlib import closing, suppress
from typing import Any

import pytest

from bus.serving.lasting import open_stream
from devices.dbp.nodes.listing import Address
from devices.dbp.proxy import tunnel, wire
from devices.dbp.proxy.tunnel import PING_S, SILENT_S, Tunnel
from devices.dbp.proxy.wire import DATA_BYTES, HEAD, WINDOW_BYTES, Hello, Target
from tests.helpers.clocks import StandingLoop
from tests.helpers.peers import until
from tests.helpers.talker import send_whole


class Nothing:
    """A near side that offers nothing."""

    def met(self, tunnel: Tunnel, hello: Hello) -> str:
        return ""

    def offered(self, tunnel: Tunnel, services: dict[str, dict[str, Any]]) -> None:
        pass

    def address_of(self, target: Target) -> Address | None:
        return None


@pytest.mark.parametrize("asked", [wire.pack(wire.PING), wire.pack_open(1, Target("none", "router"))])
async def test_an_end_that_reads_no_answers_is_disconnected(
    asked: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "WAITING_BYTES", 1 << 16)
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # on some machines it holds all of that
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    one = Tunnel(reader, writer, False, Hello("near", "near end"), Nothing())
    served = asyncio.ensure_future(one.run())
    with far:
        said = wire.pack_hello(Hello("far", "far end")) + asked * (400_000 // len(asked))
        with suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(far, said)
        assert await served == "the other side reads too slowly"
    assert one.refused["slow reader"] == 1


class At(Nothing):
    """A near side that offers a service at one host."""

    def __init__(self, host: str, port: int = 1) -> None:
        self._place = host, port

    def address_of(self, target: Target) -> Address | None:
        return self._place


@pytest.mark.parametrize("host", ["127.0.0.1", "a..b", "x" * 300])
async def test_a_service_at_which_nobody_can_connect_ends_its_stream(host: str) -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    one, heard = Tunnel(reader, writer, False, Hello("near", "near end"), At(host)), b""
    served = asyncio.ensure_future(one.run())
    with far:
        said = wire.pack_hello(Hello("far", "far end")) + wire.pack_open(1, Target("any", "router"))
        await loop.sock_sendall(far, said)
        while b"cannot connect" not in heard:
            heard += await loop.sock_recv(far, 4096)
    await served
    assert (one.refused["cannot connect"], one.streams) == (1, 0)


@pytest.mark.parametrize("late_s", [0.0, 60.0])
def test_an_end_is_silent_by_the_turns_in_which_it_could_have_been_heard(late_s: float) -> None:
    """A process that had no turn for a minute has heard nobody meanwhile, and that is not their silence."""
    with closing(StandingLoop()) as loop:
        near, far = socket.socketpair()
        reader, writer = loop.run_until_complete(asyncio.open_connection(sock=near))
        served = loop.create_task(Tunnel(reader, writer, False, Hello("near", ""), Nothing()).run())
        far.sendall(wire.pack_hello(Hello("far", "far end")))
        loop.pass_s(0.0)
        for _ in range(int(SILENT_S / PING_S) - 1):
            loop.pass_s(PING_S + late_s)
            assert not served.done()
        loop.pass_s(PING_S + late_s)
        assert served.result() == "the other side closed the connection"
        far.close()


def test_an_end_that_says_something_is_kept() -> None:
    with closing(StandingLoop()) as loop:
        near, far = socket.socketpair()
        reader, writer = loop.run_until_complete(asyncio.open_connection(sock=near))
        one = Tunnel(reader, writer, False, Hello("near", ""), Nothing())
        served = loop.create_task(one.run())
        far.sendall(wire.pack_hello(Hello("far", "far end")))
        loop.pass_s(0.0)
        for _ in range(5):
            far.sendall(wire.pack(wire.PONG))
            loop.pass_s(2 * PING_S)
        assert not served.done()
        one.close()
        loop.run_until_complete(served)
        far.close()


class Far:
    """The other side of a tunnel, which has opened stream 1 to a service of the near side."""

    def __init__(self, service: socket.socket) -> None:
        self._service = service

    async def __aenter__(self) -> "Far":
        near, far = socket.socketpair()
        ends = await open_stream(sock=near)
        self._near = Tunnel(*ends, False, Hello("near", ""), At(*self._service.getsockname()))
        self.served = asyncio.ensure_future(self._near.run())
        self._reader, self.writer = await asyncio.open_connection(sock=far)
        self.writer.write(
            wire.pack_hello(Hello("far", "far end")) + wire.pack_open(1, Target("any", "router"))
        )
        self.peer = (await asyncio.to_thread(self._service.accept))[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        self.peer.close()
        await self.served

    def give(self, data: bytes) -> None:
        for start in range(0, len(data), DATA_BYTES):
            self.writer.write(wire.pack(wire.DATA, 1, data[start : start + DATA_BYTES]))

    async def frame(self) -> tuple[int, bytes]:
        head = wire.read_head(await self._reader.readexactly(HEAD.size))
        assert head is not None
        return head.kind, await self._reader.readexactly(head.size)

    async def all_data(self, heard: bytes = b"") -> bytes:
        """Return the bytes of the stream until its end, giving credit for them."""
        self.writer.write(wire.pack_credit(1, len(heard)) if heard else b"")
        while (found := await self.frame())[0] != wire.CLOSE:
            if found[0] == wire.DATA:
                heard += found[1]
                self.writer.write(wire.pack_credit(1, len(found[1])))
        return heard


async def test_what_a_service_sent_before_it_went_comes_though_it_takes_nothing_any_more() -> None:
    said, heard = os.urandom(WINDOW_BYTES + 180_000), b""
    with socket.create_server(("127.0.0.1", 0)) as service:
        async with Far(service) as far:
            await asyncio.to_thread(send_whole, far.peer, said)
            far.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            far.peer.close()
            while len(heard) < WINDOW_BYTES:
                kind, body = await far.frame()
                heard += body if kind == wire.DATA else b""
            far.give(b"for nobody")
            while kind != wire.CREDIT:
                kind, _ = await far.frame()
            assert await far.all_data(heard) == said


async def test_what_came_by_a_tunnel_before_its_end_is_written() -> None:
    said = os.urandom(WINDOW_BYTES)
    with socket.create_server(("127.0.0.1", 0)) as service:
        async with Far(service) as far:
            far.peer.settimeout(30)
            far.give(said)
            far.writer.close()
            await far.served
            heard = b""
            while data := await asyncio.to_thread(far.peer.recv, 1 << 16):
                heard += data
            assert heard == said


async def dialling(host: str, port: int, said: bytes) -> tuple[Tunnel, asyncio.Task[str], socket.socket]:
    """Return a tunnel whose stream 1 waits for its connection to a service, with what came for it."""
    near, far = socket.socketpair()
    one = Tunnel(*await open_stream(sock=near), False, Hello("near", ""), At(host, port))
    served = asyncio.create_task(one.run())
    far.setblocking(False)
    opening = wire.pack_hello(Hello("far", "")) + wire.pack_open(1, Target("any", "router"))
    await asyncio.get_running_loop().sock_sendall(far, opening + wire.pack(wire.DATA, 1, said))
    await until(lambda: one.counts["bytes_in"] == len(said))
    return one, served, far


async def test_what_came_for_a_connection_that_is_not_made_yet_is_written_though_the_tunnel_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free, opened = asyncio.Event(), open_stream

    async def late(*place: Any) -> Any:
        await free.wait()
        return await opened(*place)

    monkeypatch.setattr(tunnel, "open_stream", late)
    with socket.create_server(("127.0.0.1", 0)) as service:
        host, port = service.getsockname()
        one, served, far = await dialling(host, port, b"an order")
        far.close()
        await served
        free.set()
        service.settimeout(10)
        peer = (await asyncio.to_thread(service.accept))[0]
        with peer:
            peer.settimeout(30)
            assert await asyncio.to_thread(peer.recv, 100) == b"an order"
            assert await asyncio.to_thread(peer.recv, 100) == b""
    assert one.counts["bytes_dropped"] == 0


@pytest.mark.parametrize("ends", [False, True], ids=["while the tunnel lasts", "after its end"])
async def test_what_came_for_a_connection_that_cannot_be_made_is_counted(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = asyncio.Event()

    async def refused(*_: Any) -> Any:
        await free.wait()
        raise ConnectionRefusedError

    monkeypatch.setattr(tunnel, "open_stream", refused)
    one, served, far = await dialling("127.0.0.1", 1, b"an order")
    if ends:
        far.close()
        await served
    free.set()
    await until(lambda: one.refused["cannot connect"] == 1)
    assert one.counts["bytes_dropped"] == len(b"an order")
    if not ends:
        await asyncio.get_running_loop().sock_sendall(far, wire.pack(wire.DATA, 1, b"more"))
        await until(lambda: one.counts["bytes_dropped"] == len(b"an ordermore"))
        far.close()
        await served


@pytest.mark.parametrize(("dialled", "numbers"), [(True, [1, 3, 5, 7]), (False, [2, 4, 6])])
async def test_after_its_last_number_a_side_begins_anew_with_those_that_are_free(
    dialled: bool, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "NUMBERS", 8)
    near, far = socket.socketpair()
    one = Tunnel(*await open_stream(sock=near), dialled, Hello("near", ""), Nothing())
    served = asyncio.create_task(one.run())
    reader, writer = await asyncio.open_connection(sock=far)
    writer.write(wire.pack_hello(Hello("far", "")))
    await until(lambda: one.far.id)
    opened, clients = list[int](), list[socket.socket]()

    async def open_one() -> None:
        client, end = socket.socketpair()
        clients.append(client)
        assert one.open(Target("any", "router"), *await open_stream(sock=end))
        while True:
            head = wire.read_head(await reader.readexactly(HEAD.size))
            assert head is not None
            await reader.readexactly(head.size)
            if head.kind == wire.OPEN:
                return opened.append(head.stream)

    for _ in range(9):
        await open_one()
        if len(opened) > 1:  # the first one lasts
            writer.write(wire.pack_close(opened[-1]))
            await until(lambda: one.streams == 1)
    assert opened == [numbers[0], *(numbers[1:] * 4)][:9]
    writer.write(wire.pack(wire.DATA, opened[0], b"still there"))
    assert await asyncio.to_thread(clients[0].recv, 100) == b"still there"
    writer.close()
    await served
    for client in clients:
        client.close()
