"""Makers of serial links: on ptys, on a serial server, and on a polled pair."""

import asyncio
import os
import socket
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.uart.codec import encode
from bridges.simulate import Rs485Node
from tests.bridges.support import PtyPair, frame
from tests.conformance.pair import Maker, Pair, Relay, Side, noise
from tests.helpers.links import rs485_link, uart_link
from tests.helpers.peers import until

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_BAUD = 3_000_000


def _write(fd: int, data: bytes) -> int:
    return os.write(fd, data) if data else 0


class Ptys:
    """A pair of pseudo-terminals with a null modem between them."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.relay = Relay(asyncio.get_running_loop())
        self.near, self.far = PtyPair(path / "near"), PtyPair(path / "far")
        for line in (self.near, self.far):
            self.wire(line)

    def wire(self, line: PtyPair) -> None:
        fd = line.master
        self.relay.join(fd, line.read, partial(_write, fd))

    def unplug(self, line: PtyPair) -> None:
        self.relay.leave(line.master)
        line.unplug()
        line.path.unlink()

    def plug(self, line: PtyPair) -> None:
        line.plug()
        self.wire(line)

    def close(self) -> None:
        self.relay.close()
        self.near.close()
        self.far.close()


def uart(path: Path, clogged: bool = False) -> Pair:
    ptys = Ptys(path)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "baud": _BAUD, "ahead_ms": 1000, **_RETRY}
    near, far = (
        Side(line.path.name, partial(uart_link, str(line.path), **limits)) for line in (ptys.near, ptys.far)
    )

    async def garbage() -> None:
        ptys.relay.inject(ptys.near.master, noise(5000))

    async def cut() -> None:
        ptys.relay.inject(ptys.near.master, encode(frame(3000))[:1500])
        await asyncio.sleep(0)
        ptys.unplug(ptys.near)
        await until(lambda: not near.up)

    async def mend() -> None:
        ptys.plug(ptys.near)

    near.open()
    far.open()
    clog = partial(ptys.relay.stop_reading, ptys.near.master)
    return Pair(near, far, clog, garbage, cut, mend, closers=[ptys.close], loses=(near, cut, mend))


class Server:
    """A TCP server that relays the bytes of each client to all others."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.relay, self._loop = Relay(loop), loop
        self.clients: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        loop.add_reader(self._socket, self._on_client)
        self.port = int(self._socket.getsockname()[1])

    def _on_client(self) -> None:
        sock, _ = self._socket.accept()
        sock.setblocking(False)
        for gone in [client for client in self.clients if client.fileno() not in self.relay.members]:
            self.clients.remove(gone)
            gone.close()
        self.clients.append(sock)
        self.relay.join(sock.fileno(), partial(sock.recv, 65536), partial(_send, sock))

    def drop(self, sock: socket.socket) -> None:
        self.relay.leave(sock.fileno())
        self.clients.remove(sock)
        sock.close()

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self.relay.close()
        for sock in self.clients:
            sock.close()


def _send(sock: socket.socket, data: bytes) -> int:
    return sock.send(data) if data else 0


def uart_socket(_: Path, clogged: bool = False) -> Pair:
    """Make a pair on a serial server: both ends are its clients, and the first client is `near`."""
    server = Server()
    url = f"socket://127.0.0.1:{server.port}"
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, **_RETRY}
    near, far = (Side(name, partial(uart_link, url, **limits)) for name in ("near", "far"))
    return served(server, near, far, encode(frame(3000))[:1500])


def served(server: Server, near: Side, far: Side, half: bytes) -> Pair:
    """Return the pair of two clients. `near` hears `half` of a frame before it is cut off."""
    near.open()
    closers = [server.close]

    def ready() -> bool:
        if near.up and server.clients and far.link is None:
            far.open()
        return len(server.relay.members) == 2

    def first() -> socket.socket:
        return server.clients[0]

    async def garbage() -> None:
        server.relay.inject(first().fileno(), noise(5000))

    async def cut() -> None:
        server.relay.inject(first().fileno(), half)
        server.drop(first())
        await until(lambda: not near.up)

    async def mend() -> None:
        await until(lambda: len(server.clients) == 2)
        server.clients.reverse()  # near reconnected last

    def clog() -> None:
        server.relay.stop_reading(first().fileno())

    return Pair(near, far, clog, garbage, cut, mend, ready, closers, loses=(near, cut, mend))


class MasterPort:
    """The master of a pty, as the port of a node."""

    def __init__(self, line: PtyPair) -> None:
        self._line, self._fd = line, line.master

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        return self._line.read()

    def write(self, data: bytes) -> int:
        try:
            return _write(self._fd, data)
        except BlockingIOError:
            return 0

    def waiting(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: the pty is closed elsewhere."""


def rs485(path: Path, clogged: bool = False) -> Pair:
    """Make a pair of a master on a pty and a node on the other side of it."""
    path.mkdir()
    loop, line = asyncio.get_running_loop(), PtyPair(path / "pair")
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "answer_ms": 5000, "idle_ms": 0, **_RETRY}
    near = Side("near", partial(rs485_link, str(line.path), baud=_BAUD, nodes=(1,), **limits))
    far = Side("far")
    nodes: list[Rs485Node] = []

    def join() -> None:
        settings = {"queue_bytes": 1 << 20, "answer_s": 30, "turnaround_s": 0}
        nodes.append(Rs485Node(MasterPort(line), 1, far.hub, loop, **settings))

    async def garbage() -> None:
        os.write(line.master, noise(2000))

    async def cut() -> None:
        os.write(line.master, encode(frame(3000))[:1500])
        nodes.pop().close()
        line.unplug()
        await until(lambda: not near.up)

    async def mend() -> None:
        line.plug()
        join()

    def clog() -> None:
        loop.remove_reader(line.master)

    def close() -> None:
        for node in nodes:
            node.close()
        line.close()

    join()
    near.open()
    return Pair(near, far, clog, garbage, cut, mend, closers=[close], loses=(near, cut, mend))


MAKERS = [
    Maker("uart", 254, uart, partial(uart, clogged=True)),
    Maker("uart-socket", 254, uart_socket, partial(uart_socket, clogged=True)),
    Maker("rs485", 254, rs485, partial(rs485, clogged=True)),
]
